"""clusters/: clusters with their node and instance pools, their sync runs, and what these observed."""

from typing import Any

from django.db.models import Q, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups, pool_cidrs
from pools.core import addresses, errors, holders
from pools.core.observed.uses import Role
from pools.models import Cluster, Finding, ObservedCIDR, ObservedObject, Severity, SyncRun, Trigger
from pools.platform.rest import attributes, fields, filters, generics, schema
from pools.platform.rest.serializers import ReasonSerializer, Representation
from pools.register import clusters, overlaps as owners


def _parse_prefix(value: object, field: str) -> Any:
    prefix = addresses.parse_cidr(value, field=field)
    if prefix.version != 6:
        raise errors.InvalidInput.for_field(
            field, "cluster_prefix", "an IPv6 prefix is expected", value
        )
    return prefix


def _parse_address(value: object, field: str) -> str:
    return str(addresses.parse_address(value, field=field))


def _parse_servers(value: object, field: str) -> list[str]:
    if not isinstance(value, list) or len(value) > clusters.MOST_DNS_SERVERS:
        raise errors.InvalidInput.for_field(
            field, "wrong_type", "a list of addresses is expected", value
        )
    return [
        _parse_address(address, f"{field}.{index}" if field else str(index))
        for index, address in enumerate(value)
    ]


class ClusterSerializer(Representation, attributes.AttributedSerializer):
    """A cluster, and what its instances are told of their network."""

    id = fields.IntegerField()
    name = fields.NameField()
    cluster_prefix = fields.CIDRField(allow_null=True)
    instance_gateway = fields.AddressField()
    instance_mtu = fields.IntegerField()
    instance_dns = fields.ListField(child=fields.AddressField())
    description = fields.DescriptionField()
    created_at = fields.TimeField()


class ClusterCreateSerializer(attributes.AttributedSerializer):
    """A new cluster; the node and the instance pool are by default the first two /64 of its prefix."""

    name = fields.NameField()
    cluster_prefix = fields.CIDRField(_parse_prefix, required=False)
    node_prefix = fields.CIDRField(_parse_prefix, required=False)
    instance_prefix = fields.CIDRField(_parse_prefix, required=False)
    description = fields.DescriptionField(required=False)


class ClusterChangeSerializer(attributes.AttributedSerializer):
    """A change of a cluster; a prefix that it lacks is divided into pools."""

    example = {"description": "Production", "instance_mtu": 1420}

    description = fields.DescriptionField()
    instance_gateway = fields.AddressField(_parse_address)
    instance_mtu = fields.IntegerField(min_value=clusters.LEAST_MTU, max_value=clusters.MOST_MTU)
    instance_dns = fields.ListField(_parse_servers, child=fields.AddressField())
    cluster_prefix = fields.CIDRField(_parse_prefix)


class ClusterFilter(attributes.AttributeFilterSet):
    name = filters.Filter(help_text="The exact name.")


class Clusters(generics.ModelViewSet):
    """Clusters."""

    queryset = Cluster.objects.all()
    serializer_class = ClusterSerializer
    create_serializer_class = ClusterCreateSerializer
    change_serializer_class = ClusterChangeSerializer
    filterset_class = ClusterFilter
    orderings = {"id": ("id",), "name": ("name",)}
    lookup_url_kwarg = "cluster"
    lookup_value_converter = "str"  # its name or id
    row_text = "A cluster."

    def get_object(self) -> Cluster:
        return get(self.kwargs["cluster"])

    def check_values(self, values: dict[str, Any], row: Cluster | None = None) -> None:
        prefix = values.get("cluster_prefix")
        if row is not None and "cluster_prefix" in values:
            generics.require(self.request, "pools.add_pool")
        new = [prefix] if prefix and not (row and prefix == row.cluster_prefix) else []
        pool_cidrs.warn_of_overlaps(self, new, owners.owner_of_prefix(row))

    @schema.example({"name": "prod", "cluster_prefix": "2001:db8:10::/48"}, "with its pools")
    @pool_cidrs.OVERLAPS
    def perform_create(self, values: dict[str, Any]) -> Cluster:
        """Register a cluster."""
        values.setdefault("custom_fields", {})  # required ones must have a value
        return clusters.create(author=self.author(), **values)

    def perform_update(self, row: Cluster, changes: dict[str, Any]) -> Cluster:
        """Change the description, the attributes, the network settings of instances, or a missing prefix."""
        return clusters.change(row, changes, author=self.author())

    @filters.parameters(
        force=filters.flag(
            help_text="true: with all that it holds; requires the permission to force releases."
        ),
        reason=filters.Filter(holders.parse_reason),
    )
    def destroy(self, request: Request, cluster: str) -> Response:
        """Remove a cluster; its history stays."""
        values = self.query_values()
        force, author = bool(values["force"]), self.author(values["reason"] or "")
        if force:
            generics.require(request, "pools.force_release")
        clusters.remove(get(cluster), author=author, force=force)
        return Response(status=204)


def get(value: str) -> Cluster:
    """Return the cluster with this name or id. Raises NotFound."""
    cluster = lookups.find_cluster(value)
    if cluster is None:
        raise errors.NotFound("There is no such cluster.")
    return cluster


class RunSerializer(Representation):
    """A sync run of a cluster; `kinds` has the counts of each kind."""

    id = fields.IntegerField()
    trigger = fields.ChoiceField(Trigger.values)
    started_at = fields.TimeField()
    ended_at = fields.TimeField(allow_null=True)
    seconds = fields.ParsedField(schema={"type": "number", "nullable": True})
    succeeded = fields.FlagField()
    kinds = fields.ObjectField()
    error = ReasonSerializer(source="coded_error", allow_null=True)


class ObservedObjectSerializer(Representation):
    """An object of a cluster as last observed, without its manifest."""

    id = fields.IntegerField()
    kind = fields.TextField()
    api_version = fields.TextField()
    namespace = fields.TextField()
    name = fields.TextField()
    uid = fields.TextField()
    resource_version = fields.TextField()
    problem = ReasonSerializer(source="coded_problem", allow_null=True)
    pending = fields.FlagField()
    first_seen_at = fields.TimeField()
    changed_at = fields.TimeField()
    missed_at = fields.TimeField(allow_null=True)


class ObservedManifestSerializer(ObservedObjectSerializer):
    """An object of a cluster as last observed."""

    manifest = fields.ObjectField(source="shown_manifest")


class FindingSerializer(Representation):
    """A finding of a sync run; it is listed as long as it is true."""

    id = fields.IntegerField()
    kind = fields.TextField()
    code = fields.TextField()
    subject = fields.TextField()
    severity = fields.ChoiceField(Severity.values)
    message = fields.TextField()
    details = fields.ObjectField()
    since = fields.TimeField()


class RunFilter(filters.FilterSet):
    trigger = filters.choice(*Trigger.values)
    succeeded = filters.flag()


class ObservedObjectFilter(filters.FilterSet):
    kind = filters.Filter(help_text="Such as CiliumNode.")
    namespace = filters.Filter()
    name = filters.Filter()
    problem = filters.condition(~Q(problem_code=""), help_text="Objects that were not ingested.")


class FindingFilter(filters.FilterSet):
    kind = filters.Filter()
    code = filters.Filter()
    severity = filters.choice(*Severity.values)


class ClusterRows(generics.ListViewSet):
    """Rows of the cluster in the path."""

    def get_queryset(self) -> QuerySet[Any]:
        cluster = get(self.kwargs["cluster"])
        rows: QuerySet[Any] = super().get_queryset()
        return rows.filter(cluster=cluster)


class Runs(ClusterRows):
    """Sync runs of a cluster, the newest first."""

    queryset = SyncRun.objects.all()
    serializer_class = RunSerializer
    filterset_class = RunFilter
    ordering = "-id"


class Objects(ClusterRows, generics.ModelViewSet):
    """Objects that were observed in a cluster."""

    queryset = ObservedObject.objects.all()
    filterset_class = ObservedObjectFilter
    orderings = {"id": ("id",), "name": ("kind", "namespace", "name", "id")}
    lookup_url_kwarg = "object_id"
    row_text = "An object as last observed."

    def get_queryset(self) -> QuerySet[Any]:
        rows = super().get_queryset()
        return rows if self.detail else rows.defer("manifest", "cidrs")  # they may be large

    def get_serializer_class(self) -> Any:
        return ObservedManifestSerializer if self.detail else ObservedObjectSerializer


class Findings(ClusterRows):
    """Findings of the sync runs of a cluster."""

    queryset = Finding.objects.all()
    serializer_class = FindingSerializer
    filterset_class = FindingFilter


_ROLES = tuple(role.value for role in Role)


class ObservedCIDRSerializer(Representation):
    """A CIDR that an object of a cluster uses; a range is several CIDRs, and `detail` has it."""

    id = fields.IntegerField()
    cidr = fields.CIDRField()
    cluster = fields.TextField(source="space.cluster.name")
    role = fields.ChoiceField(_ROLES)
    kind = fields.TextField()
    namespace = fields.TextField()
    name = fields.TextField()
    uid = fields.TextField()
    detail = fields.TextField()


class ObservedCIDRFilter(filters.FilterSet):
    cluster = filters.Filter(
        lookups.cluster,
        select=lambda rows, cluster: rows.filter(
            space__in=list(cluster.spaces.values_list("pk", flat=True))
        ),
        help_text="Name or id.",
    )
    role = filters.choice(*_ROLES)
    kind = filters.Filter(help_text="Such as ServiceCIDR.")
    namespace = filters.Filter()
    name = filters.Filter()
    within = filters.cidr(
        field_name="cidr",
        lookup_expr="net_contained_or_equal",
        help_text="CIDRs inside of this one, or equal to it.",
    )
    overlapping = filters.cidr(
        field_name="cidr", lookup_expr="net_overlaps", help_text="CIDRs that have addresses of it."
    )


class ObservedCIDRs(generics.ModelViewSet):
    """CIDRs that objects of clusters use: Services, nodes, load balancers, egress, secondary networks."""

    queryset = ObservedCIDR.objects.select_related("space__cluster")
    serializer_class = ObservedCIDRSerializer
    filterset_class = ObservedCIDRFilter
    orderings = {"id": ("id",), "cidr": ("cidr", "id")}
    lookup_url_kwarg = "observed_cidr_id"
    absent = "There is no such observed CIDR."
    row_text = "A CIDR that an object of a cluster uses."
