"""requests/: allocation requests that wait for free blocks."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups
from pools.api.schemas import endpoints
from pools.core import block_fields, errors
from pools.models import AllocationRequest, Pool
from pools.models.requests import RequestState
from pools.platform.rest import pagination, query, views
from pools.register.allocator import requests


class Requests(views.View):
    needs = {"GET": ("pools.view_allocationrequest",)}

    @extend_schema(**endpoints.REQUESTS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = AllocationRequest.objects.all()
        if cluster := parameters.parse("cluster", lookups.cluster):
            rows = rows.filter(pool__cluster=cluster)
        if pools := parameters.parse("pool", lookups.pools):
            rows = rows.filter(pool__in=pools)
        if state := parameters.parse("state", query.choice(*RequestState.values)):
            rows = rows.filter(state=state)
        for name in ("holder_kind", "holder_id", "org", "env"):
            if value := parameters.text(name):
                rows = rows.filter(**{name: value})
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=endpoints.REQUEST_FIELDS,
                shape=shapes,
            )
        )


class RequestView(views.View):
    needs = {"GET": ("pools.view_allocationrequest",), "DELETE": ("pools.allocate",)}

    @extend_schema(**endpoints.REQUEST)
    def get(self, request: Request, request_id: int) -> views.Answer:
        row = AllocationRequest.objects.filter(pk=request_id).first()
        if row is None:
            raise errors.NotFound("There is no such request.")
        return views.answer(shape(row))

    @extend_schema(**endpoints.REQUEST_CANCEL)
    def delete(self, request: Request, request_id: int) -> views.Answer:
        return views.answer(shape(requests.cancel(request_id, author=views.author(request))))


def shape(request: AllocationRequest) -> dict[str, Any]:
    rows = AllocationRequest.objects.filter(pk=request.pk).values()
    return shapes([dict(row) for row in rows])[0]


def shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    pools = Pool.objects.filter(pk__in={row["pool_id"] for row in rows})
    names = {
        pk: (name, cluster)
        for pk, name, cluster in pools.values_list("pk", "name", "cluster__name")
    }
    return [
        {
            "id": row["id"],
            "state": row["state"],
            "pool": names[row["pool_id"]][0],
            "pool_id": row["pool_id"],
            "cluster": names[row["pool_id"]][1],
            "holder": {"kind": row["holder_kind"], "id": row["holder_id"]},
            "org": row["org"],
            "env": row["env"],
            "attempts": row["attempts"],
            "message": row["last_error"],
            "block_ids": row["block_ids"],
            "created_at": block_fields.time(row["created_at"]),
            "next_try_at": block_fields.time(row["next_try_at"]),
            "ended_at": block_fields.time(row["ended_at"]),
        }
        for row in rows
    ]
