"""environments/: tenants' environments, and which of them lack addresses since when."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_view

from pools.api import lookups
from pools.models import Environment
from pools.platform.rest import fields, filters, generics, schema
from pools.platform.rest.serializers import Representation, Serializer
from pools.register import environments

_STATUSES = ("ok", "degraded")
_EXAMPLE = schema.example(
    {"cluster": "prod", "org": "acme", "env": "shop", "description": "Web shop"},
    "before its first allocation",
)


class EnvironmentSerializer(Representation):
    """An environment of an organization, and whether its last allocation failed."""

    id = fields.IntegerField()
    cluster = fields.TextField(source="cluster.name")
    org = fields.TextField()
    env = fields.TextField()
    description = fields.DescriptionField()
    declared_at = fields.TimeField(allow_null=True)
    status = fields.ChoiceField(_STATUSES)
    degraded = fields.FlagField()
    reason = fields.TextField()
    message = fields.TextField()
    since = fields.TimeField(source="degraded_since", allow_null=True)


class EnvironmentCreateSerializer(Serializer):
    """An environment that has no allocation yet."""

    cluster = fields.TextField(lookups.cluster_by_name)
    org = fields.IdentifierField(required=False, default="")
    env = fields.IdentifierField()
    description = fields.DescriptionField(required=False, default="")


class EnvironmentChangeSerializer(Serializer):
    description = fields.DescriptionField()


class EnvironmentFilter(filters.FilterSet):
    cluster = filters.Filter(lookups.cluster, help_text="Name or id.")
    org = filters.Filter()
    env = filters.Filter()
    status = filters.choice(
        *_STATUSES,
        select=lambda rows, status: rows.filter(degraded_since__isnull=status == "ok"),
    )


@extend_schema_view(create=extend_schema(examples=_EXAMPLE))
class Environments(generics.ModelViewSet):
    """Environments, and which of them lack addresses."""

    idempotent = ("POST",)
    queryset = Environment.objects.prefetch_related("cluster")
    serializer_class = EnvironmentSerializer
    create_serializer_class = EnvironmentCreateSerializer
    change_serializer_class = EnvironmentChangeSerializer
    filterset_class = EnvironmentFilter
    limited_by = ("cluster",)
    limited_by_body = True
    lookup_url_kwarg = "environment_id"
    row_text = "An environment."

    def perform_create(self, values: dict[str, Any]) -> Environment:
        """Declare an environment before its first allocation."""
        return environments.declare(author=self.author(), **values)

    def perform_update(self, row: Environment, values: dict[str, Any]) -> Environment:
        """Change the description of an environment."""
        return environments.change(row.pk, author=self.author(), **values)

    def perform_destroy(self, row: Environment) -> None:
        """Remove an environment that holds no block and has no pending request."""
        environments.remove(row.pk, author=self.author())
