"""clusters/{}/drift/ and clusters/{}/nodes/: differences and decisions on them, blocks of nodes."""

from typing import Any

from django.db.models import Q, QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api.clusters import clusters
from pools.cilium import pod_cidrs
from pools.clusters import drift
from pools.core import errors
from pools.core.cilium import ciliumnode, podippool
from pools.models import Drift, ObservedObject
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import ByFamilySerializer, Representation, Serializer

ANY = {"nullable": True, "description": "Any JSON value; null if the field is absent."}


class DriftSerializer(Representation):
    """A field of an object that differs between the cluster and the register."""

    id = fields.IntegerField()
    kind = fields.TextField()
    namespace = fields.TextField()
    name = fields.TextField()
    path = fields.TextField()
    desired = fields.ParsedField(schema=ANY)
    observed = fields.ParsedField(schema=ANY)
    managers = fields.ListField(child=fields.TextField())
    since = fields.TimeField()
    conflict = fields.TextField()
    conflict_code = fields.TextField()
    ignored_by = fields.TextField(source="ignored_by.username", allow_null=True)
    ignored_at = fields.TimeField(allow_null=True)
    ignored_reason = fields.TextField()


class DriftDecisionSerializer(Representation):
    """The differences that remain; `pool_id` of a pool that was adopted."""

    pool_id = fields.IntegerField(allow_null=True)
    differences = fields.ListField(child=DriftSerializer())


class DriftIgnoreSerializer(Serializer):
    reason = fields.ReasonField()


class OwnedFieldSerializer(Representation):
    """A field that other field managers own, as it is and as the register has it."""

    path = fields.TextField()
    desired = fields.ParsedField(schema=ANY)
    observed = fields.ParsedField(schema=ANY)
    managers = fields.ListField(child=fields.TextField())


class TakeoverPreviewSerializer(Representation):
    """The fields of a take-over; `token` confirms exactly them."""

    kind = fields.TextField(source="cluster_object.kind")
    namespace = fields.TextField(source="cluster_object.namespace")
    name = fields.TextField(source="cluster_object.name")
    resource_version = fields.TextField()
    token = fields.TextField()
    # The name of a property of serializers, which DRF's metaclass keeps.
    fields = fields.ListField(child=OwnedFieldSerializer())


class TakeoverSerializer(Serializer):
    token = fields.TextField()
    reason = fields.ReasonField()


class DriftFilter(filters.FilterSet):
    kind = filters.Filter()
    namespace = filters.Filter()
    name = filters.Filter()
    ignored = filters.flag(field_name="ignored_at", lookup_expr="isnull", exclude=True)
    conflict = filters.condition(~Q(conflict=""), help_text="Fields that were not written.")


_CHANGE = ("pools.change_drift",)


class Drifts(clusters.ClusterRows):
    """Fields that differ between a cluster and the register."""

    queryset = Drift.objects.prefetch_related("ignored_by")
    serializer_class = DriftSerializer
    filterset_class = DriftFilter
    lookup_url_kwarg = "drift_id"

    @extend_schema(responses=TakeoverPreviewSerializer)
    @action(
        detail=True, url_name="drift-ownership",
        needs={"GET": _CHANGE, "POST": _CHANGE}, problem_statuses=(409, 502),
    )  # fmt: skip
    def ownership(self, request: Request, cluster: str, drift_id: int) -> Response:
        """The fields that a take-over would write, and their managers."""
        cluster_object = _cluster_object(cluster, drift_id)
        preview = drift.preview(cluster_object, author=self.author())
        return self.respond(preview, TakeoverPreviewSerializer)

    @extend_schema(request=TakeoverSerializer, responses=TakeoverPreviewSerializer)
    @ownership.mapping.post
    def take_over(self, request: Request, cluster: str, drift_id: int) -> Response:
        """Take exactly the fields of a preview over from their managers.

        If the object or its managers have changed since, nothing is written: object_changed.
        """
        cluster_object = _cluster_object(cluster, drift_id)
        for permission in drift.adopt_permissions(cluster_object.kind):
            generics.require(request, permission)
        values = self.read(request, TakeoverSerializer)
        author = self.author(values["reason"])
        preview = drift.take_over(cluster_object, token=values["token"], author=author)
        return self.respond(preview, TakeoverPreviewSerializer)

    @extend_schema(request=DriftIgnoreSerializer, responses=DriftDecisionSerializer)
    @generics.post_action(*_CHANGE, url_path="<str:decision>", url_name="drift-decision")
    def resolve(self, request: Request, cluster: str, drift_id: int, decision: str) -> Response:
        """Resolve a difference: apply, adopt, ignore or unignore."""
        # `apply` and `adopt` apply to the whole object, `ignore` and `unignore` to the one field.
        rows = Drift.objects.filter(cluster=clusters.get(cluster), pk=drift_id)
        row = rows.select_related("cluster").first()
        if row is None or decision not in {"apply", "adopt", "ignore", "unignore"}:
            raise errors.NotFound("There is no such difference, or no such decision.")
        cluster_object = drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace)
        pool_id = None
        if decision == "apply":
            remaining = drift.apply(cluster_object, author=self.author())
        elif decision == "adopt":
            for permission in drift.adopt_permissions(cluster_object.kind):
                generics.require(request, permission)
            adopted = drift.adopt(cluster_object, author=self.author())
            pool_id = adopted if cluster_object.kind == podippool.KIND else None
            remaining = drift.differences(cluster_object)
        elif decision == "ignore":
            author = self.author(self.read(request, DriftIgnoreSerializer)["reason"])
            user: Any = request.user  # logged in
            remaining = [drift.ignore(row, author=author, user=user)]
        else:
            remaining = [drift.unignore(row, author=self.author())]
        differences = Drift.objects.filter(pk__in=[difference.pk for difference in remaining])
        differences = differences.prefetch_related("ignored_by").order_by("path")
        return self.respond(
            {"pool_id": pool_id, "differences": differences}, DriftDecisionSerializer
        )


def _cluster_object(cluster: str, drift_id: int) -> drift.ClusterObject:
    rows = Drift.objects.filter(cluster=clusters.get(cluster), pk=drift_id)
    row = rows.select_related("cluster").first()
    if row is None:
        raise errors.NotFound("There is no such difference.")
    return drift.ClusterObject(row.cluster, row.kind, row.name, row.namespace)


class FamilyNumbersSerializer(ByFamilySerializer):
    """Numbers of addresses by IP family."""

    ipv4 = fields.IntegerField(required=False)
    ipv6 = fields.IntegerField(required=False)


class PoolDemandSerializer(Representation):
    """What a node requests of one pool, and what it has."""

    pool = fields.TextField()
    needed = FamilyNumbersSerializer()
    usable = FamilyNumbersSerializer()
    missing = FamilyNumbersSerializer()
    cidrs = fields.ListField(child=fields.CIDRField())


class NodeCIDRSerializer(Representation):
    """A CIDR that a node lists for a pool."""

    pool = fields.TextField()
    cidr = fields.CIDRField()

    def to_representation(self, instance: Any) -> dict[str, Any]:
        return super().to_representation(dict(zip(self.fields, instance, strict=True)))


class NodeOverlapSerializer(NodeCIDRSerializer):
    """A CIDR that a node lists although somebody else holds it."""

    holder = fields.TextField()


class NodeSerializer(Representation):
    """A node of a cluster; `waiting` are blocks that were not written to it yet."""

    name = fields.TextField()
    uid = fields.TextField()
    pools = fields.ListField(child=PoolDemandSerializer())
    orphans = fields.ListField(child=NodeCIDRSerializer())
    overlaps = fields.ListField(child=NodeOverlapSerializer())
    waiting = fields.ListField(child=fields.CIDRField())
    error = fields.TextField()
    problem = fields.TextField()


class NodeFilter(filters.FilterSet):
    name = filters.Filter(help_text="The exact name.")


class Nodes(generics.ListViewSet):
    """What the nodes of a cluster request and have."""

    queryset = ObservedObject.objects.filter(kind=ciliumnode.KIND).only("name")
    serializer_class = NodeSerializer
    filterset_class = NodeFilter
    orderings = {"name": ("name", "id")}
    ordering = "name"

    def get_queryset(self) -> QuerySet[ObservedObject]:
        self.cluster_id = clusters.get(self.kwargs["cluster"]).pk
        return super().get_queryset().filter(cluster=self.cluster_id)

    def paginate_queryset(self, queryset: Any) -> Any:
        """The nodes of a page in its order; a name that two objects share appears twice."""
        names = [row.name for row in super().paginate_queryset(queryset)]
        if not names:
            return []
        rows = ObservedObject.objects.filter(cluster_id=self.cluster_id, kind=ciliumnode.KIND)
        before = rows.filter(name__lt=min(names)).order_by("-name").values_list("name", flat=True)
        # Between them may be a second object of the same name whose deletion is not yet confirmed.
        limit = rows.filter(name__gte=min(names), name__lte=max(names)).count()
        nodes = pod_cidrs.list_nodes(self.cluster_id, after=before.first() or "", limit=limit)
        by_name = {node.name: node for node in nodes}
        return [by_name[name] for name in names if name in by_name]
