"""clusters/{}/runs/, objects/, findings/, drift/: sync runs, and what they observed and planned.

Beside it: observed-cidrs/: the addresses that objects of clusters use besides pools; read-only.
"""

from __future__ import annotations

from typing import Any

from django.db.models import Q, QuerySet

from pools.api import lookups
from pools.api.clusters import clusters
from pools.core.observed.uses import Role
from pools.models import Drift, Finding, ObservedCIDR, ObservedObject, Severity, SyncRun, Trigger
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import Representation

ANY = {"nullable": True, "description": "Any JSON value; null if the field is absent."}


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


class DriftFilter(filters.FilterSet):
    kind = filters.Filter()
    namespace = filters.Filter()
    name = filters.Filter()
    ignored = filters.flag(field_name="ignored_at", lookup_expr="isnull", exclude=True)
    conflict = filters.condition(~Q(conflict=""), help_text="Fields that were not written.")


class _ClusterView(generics.GenericView):
    """An endpoint of rows of the cluster in the path."""

    def get_queryset(self) -> QuerySet[Any]:
        cluster = clusters.get(self.kwargs["cluster"])
        rows: QuerySet[Any] = super().get_queryset()
        return rows.filter(cluster=cluster)


class Runs(_ClusterView, generics.ListView):
    """Sync runs of a cluster, the newest first."""

    queryset = SyncRun.objects.all()
    serializer_class = RunSerializer
    filterset_class = RunFilter
    ordering = "-id"


class Objects(_ClusterView, generics.ListView):
    """Objects that were observed in a cluster."""

    queryset = ObservedObject.objects.defer("manifest", "cidrs")  # they may be large
    serializer_class = ObservedObjectSerializer
    filterset_class = ObservedObjectFilter
    orderings = {"id": ("id",), "name": ("kind", "namespace", "name", "id")}


class ObjectView(_ClusterView, generics.DetailView):
    """An object as last observed."""

    queryset = ObservedObject.objects.all()
    serializer_class = ObservedManifestSerializer
    lookup_url_kwarg = "object_id"


class Findings(_ClusterView, generics.ListView):
    """Findings of the sync runs of a cluster."""

    queryset = Finding.objects.all()
    serializer_class = FindingSerializer
    filterset_class = FindingFilter


class Drifts(_ClusterView, generics.ListView):
    """Fields that differ between a cluster and the register."""

    queryset = Drift.objects.prefetch_related("ignored_by")
    serializer_class = DriftSerializer
    filterset_class = DriftFilter


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


class _ObservedCIDRView(generics.GenericView):
    queryset = ObservedCIDR.objects.select_related("space__cluster")
    serializer_class: Any = ObservedCIDRSerializer
    lookup_url_kwarg = "observed_cidr_id"
    absent = "There is no such observed CIDR."


class ObservedCIDRs(_ObservedCIDRView, generics.ListView):
    """CIDRs that objects of clusters use: Services, nodes, load balancers, egress, secondary networks."""

    filterset_class = ObservedCIDRFilter
    orderings = {"id": ("id",), "cidr": ("cidr", "id")}


class ObservedCIDRView(_ObservedCIDRView, generics.DetailView):
    """A CIDR that an object of a cluster uses."""
