"""clusters/{}/runs/, objects/, findings/: sync runs, and what they observed.

Beside it: observed-cidrs/: the addresses that objects of clusters use besides pools; read-only.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from pools.api import lookups
from pools.api.clusters import clusters
from pools.core.observed.uses import Role
from pools.models import Finding, ObservedCIDR, ObservedObject, Severity, SyncRun, Trigger
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import Representation


class ObservedErrorSerializer(Representation):
    """Why a sync run failed, or why an object was not ingested."""

    code = fields.TextField()
    message = fields.TextField()


class RunSerializer(Representation):
    """A sync run of a cluster; `kinds` has the counts of each kind."""

    id = fields.IntegerField()
    trigger = fields.ChoiceField(Trigger.values)
    started_at = fields.TimeField()
    ended_at = fields.TimeField(allow_null=True)
    seconds = fields.ParsedField(schema={"type": "number", "nullable": True})
    succeeded = fields.FlagField()
    kinds = fields.ObjectField()
    error = ObservedErrorSerializer(source="coded_error", allow_null=True)


class ObservedObjectSerializer(Representation):
    """An object of a cluster as last observed, without its manifest."""

    id = fields.IntegerField()
    kind = fields.TextField()
    api_version = fields.TextField()
    namespace = fields.TextField()
    name = fields.TextField()
    uid = fields.TextField()
    resource_version = fields.TextField()
    problem = ObservedErrorSerializer(source="coded_problem", allow_null=True)
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
        cluster = clusters.get(self.kwargs["cluster"])
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
