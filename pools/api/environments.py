"""environments/: tenants and whether their last allocation failed."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.api.schemas import endpoints
from pools.core import block_fields
from pools.models import Cluster, Environment
from pools.platform.rest import pagination, query, views


class Environments(views.View):
    needs = {"GET": ("pools.view_environment",)}

    @extend_schema(**endpoints.ENVIRONMENTS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = Environment.objects.all()
        if cluster := parameters.parse("cluster", lookups.cluster):
            rows = rows.filter(cluster=cluster)
        for name in ("org", "env"):
            if value := parameters.text(name):
                rows = rows.filter(**{name: value})
        if status := parameters.parse("status", query.choice("ok", "degraded")):
            rows = rows.filter(degraded_since__isnull=status == "ok")
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=endpoints.ENVIRONMENT_FIELDS,
                shape=_shapes,
            )
        )


def _shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    clusters = Cluster.objects.in_bulk({row["cluster_id"] for row in rows})
    return [
        {
            "id": row["id"],
            "cluster": clusters[row["cluster_id"]].name,
            "org": row["org"],
            "env": row["env"],
            "status": "ok" if row["degraded_since"] is None else "degraded",
            "degraded": row["degraded_since"] is not None,
            "reason": row["reason"],
            "message": row["message"],
            "since": block_fields.time(row["degraded_since"]),
        }
        for row in rows
    ]
