"""Endpoints of the address delivery settings of clusters, and of webhook decisions."""

from __future__ import annotations

from typing import Any

from django.urls import path
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request

from claims.api import scoped
from claims.models import Decision, NetworkSettings
from claims.models.settings import Annotation
from claims.networks import settings
from pools.api.clusters import clusters
from pools.core import block_fields
from pools.models import Cluster
from pools.platform.rest import openapi, pagination, parsing, query, views
from pools.webhooks import configuration

_ANNOTATION = {"type": "string", "enum": list(Annotation.values)}
_CHANGEABLE = {
    "annotation": _ANNOTATION,
    "default_nad_namespace": openapi.TEXT,
    "default_nad_name": openapi.TEXT,
}
_SETTINGS = openapi.shape(
    "cluster annotation default_nad_namespace default_nad_name webhooks",
    cluster=openapi.TEXT,
    **_CHANGEABLE,
    webhooks=openapi.listed(openapi.TEXT),
)
_GET = openapi.says("Get the address delivery settings of a cluster", {200: _SETTINGS}, fails="404")
_PATCH = openapi.says(
    "Change the address delivery settings of a cluster",
    {200: _SETTINGS},
    fails="404 411 413 415",
    **openapi.body(openapi.shape(**_CHANGEABLE) | openapi.SOMETHING),
    examples=[
        OpenApiExample(
            "with kubevirt/ipam-extensions", {"annotation": "addresses"}, request_only=True
        )
    ],
)
_DECISION = openapi.shape(
    "id cluster at path operation namespace name vm network code message allowed patch",
    id=openapi.WHOLE,
    cluster=openapi.TEXT,
    at=openapi.TIME,
    path=openapi.TEXT,
    operation=openapi.TEXT,
    namespace=openapi.TEXT,
    name=openapi.TEXT,
    vm=openapi.TEXT,
    network=openapi.TEXT,
    code=openapi.TEXT,
    message=openapi.TEXT,
    allowed=openapi.FLAG,
    patch=openapi.nullable(openapi.listed({"type": "object", "additionalProperties": True})),
    milliseconds={"type": "number"},
)
_DECISIONS = openapi.says(
    "List webhook decisions",
    {200: openapi.page(_DECISION)},
    parameters=openapi.query(
        cluster="name or id",
        namespace="of the VM",
        vm="name of the VM",
        network="logical network name",
        code="such as patched, no_entry",
        path="mutate-pods, mutate-vms",
        **openapi.PAGED,
    ),
)


class Settings(views.View):
    needs = {
        "GET": ("claims.view_networksettings",),
        "PATCH": ("claims.change_networksettings",),
    }

    @extend_schema(**_GET)
    def get(self, request: Request, cluster: str) -> views.Answer:
        cluster_row = clusters.get(cluster)
        return views.answer(_settings_shape(cluster_row, settings.for_cluster(cluster_row)))

    @extend_schema(**_PATCH)
    def patch(self, request: Request, cluster: str) -> views.Answer:
        body = parsing.fields(request, *_CHANGEABLE)
        parsers: dict[str, Any] = {
            "annotation": lambda value, field_path: parsing.choice(
                value, field_path, tuple(Annotation.values)
            ),
            "default_nad_namespace": settings.parse_namespace,
            "default_nad_name": settings.parse_name,
        }
        changes = {name: body.parse(name, parsers[name]) for name in parsers if name in body.data}
        body.report.raise_any()
        cluster_row = clusters.get(cluster)
        row = settings.change(cluster_row, changes, author=views.author(request))
        return views.answer(_settings_shape(cluster_row, row))


class Decisions(views.View):
    needs = {"GET": ("claims.view_decision",)}

    @extend_schema(**_DECISIONS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = scoped.rows(request, Decision)
        if cluster := parameters.parse("cluster", scoped.cluster_parser(request)):
            rows = rows.filter(cluster=cluster)
        for name in ("namespace", "vm", "network", "code", "path"):
            if value := parameters.text(name):
                rows = rows.filter(**{name: value})
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=_DECISION["properties"],
                shape=_decision_shapes,
                default="-id",
            )
        )


def _settings_shape(cluster: Cluster, row: NetworkSettings) -> dict[str, Any]:
    return {
        "cluster": cluster.name,
        **{name: getattr(row, name) for name in _CHANGEABLE},
        "webhooks": [configuration.path(hook, cluster.name) for hook in configuration.HOOKS],
    }


def _decision_shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    clusters_by_id = Cluster.objects.in_bulk({row["cluster_id"] for row in rows})
    return [
        {
            **{name: row[name] for name in _DECISION["properties"] if name in row},
            "cluster": clusters_by_id[row["cluster_id"]].name,
            "at": block_fields.time(row["at"]),
        }
        for row in rows
    ]


urlpatterns = [
    path("clusters/<str:cluster>/network-settings/", Settings.as_view(), name="network-settings"),
    path("decisions/", Decisions.as_view(), name="decisions"),
]
