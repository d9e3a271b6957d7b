"""environments/: tenants' environments, and which of them lack addresses since when."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.models import Environment
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import Representation, Serializer
from pools.register import environments

_STATUSES = ("ok", "degraded")
_EXAMPLE = OpenApiExample(
    "before its first allocation",
    {"cluster": "prod", "org": "acme", "env": "shop", "description": "Web shop"},
    request_only=True,
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


class _EnvironmentView(generics.GenericView):
    queryset = Environment.objects.prefetch_related("cluster")
    serializer_class: Any = EnvironmentSerializer
    lookup_url_kwarg = "environment_id"


class Environments(_EnvironmentView, generics.ListView):
    """Environments, and which of them lack addresses."""

    idempotent = ("POST",)
    filterset_class = EnvironmentFilter
    limited_by = ("cluster",)
    limited_by_body = True

    @extend_schema(
        request=EnvironmentCreateSerializer,
        responses={201: EnvironmentSerializer},
        examples=[_EXAMPLE],
    )
    def post(self, request: Request) -> Response:
        """Declare an environment before its first allocation."""
        values, author = self.read(request, EnvironmentCreateSerializer), self.author()
        return self.create(lambda: environments.declare(author=author, **values))


class EnvironmentView(_EnvironmentView, generics.DetailView):
    """An environment."""

    @extend_schema(request=EnvironmentChangeSerializer)
    def patch(self, request: Request, environment_id: int) -> Response:
        """Change the description of an environment."""
        environments.get_environment(environment_id)
        values = self.read(request, EnvironmentChangeSerializer, partial=True)
        author = self.author()
        return self.respond(environments.change(environment_id, author=author, **values))

    def delete(self, request: Request, environment_id: int) -> Response:
        """Remove an environment that holds no block and has no pending request."""
        environments.remove(environment_id, author=self.author())
        return Response(status=204)
