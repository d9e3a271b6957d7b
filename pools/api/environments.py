"""environments/: which tenant lacks addresses, and since when."""

from __future__ import annotations

from django.db.models import QuerySet

from pools.api import lookups
from pools.models import Environment
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import Representation

_STATUSES = ("ok", "degraded")


class EnvironmentSerializer(Representation):
    """An environment of an organization, and whether its last allocation failed."""

    id = fields.IntegerField()
    cluster = fields.TextField(source="cluster.name")
    org = fields.TextField()
    env = fields.TextField()
    status = fields.ChoiceField(_STATUSES)
    degraded = fields.FlagField()
    reason = fields.TextField()
    message = fields.TextField()
    since = fields.TimeField(source="degraded_since", allow_null=True)


class EnvironmentFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    org = filters.Filter()
    env = filters.Filter()
    status = filters.choice(*_STATUSES, method="filter_status")

    def filter_status(
        self, rows: QuerySet[Environment], _name: str, status: str
    ) -> QuerySet[Environment]:
        return rows.filter(degraded_since__isnull=status == "ok")


class Environments(generics.ListView):
    """Environments, and which of them lack addresses."""

    needs = {"GET": ("pools.view_environment",)}
    queryset = Environment.objects.prefetch_related("cluster")
    serializer_class = EnvironmentSerializer
    filterset_class = EnvironmentFilter
