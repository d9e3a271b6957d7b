"""leaks/: list leaked blocks and reclaim them."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import allocations, lookups
from pools.api.schemas import leaks as leak_schema
from pools.core import object_reader
from pools.models import Leak
from pools.platform import idempotency
from pools.platform.rest import pagination, parsing, query, views
from pools.register.leaks import detection, listing, reclaim

MOST = 1000  # blocks in one request


class Leaks(views.View):
    needs = {"GET": ("pools.view_leak",)}

    @extend_schema(**leak_schema.LEAKS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = _filter_rows(parameters)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=leak_schema.LEAK_FIELDS,
                shape=listing.leak_rows,
            )
        )


class Reclaim(views.View):
    needs = {"POST": ("pools.reclaim",)}

    @extend_schema(**leak_schema.RECLAIM)
    def post(self, request: Request, block_id: int) -> views.Answer:
        body = parsing.fields(request, "holder", "org", "allocated_at", "reason")
        target = _target(body, block_id)
        reason = body.parse("reason", parsing.reason) or ""
        body.report.raise_any()

        def work() -> idempotency.Stored:
            result = reclaim.reclaim(target, author=views.author(request, reason))
            return idempotency.Stored(200, result.block)

        return views.answer(views.run_once(request, work).answer)


class ReclaimAll(views.View):
    needs = {"POST": ("pools.reclaim",)}

    @extend_schema(**leak_schema.RECLAIM_ALL)
    def post(self, request: Request) -> views.Answer:
        body = parsing.fields(request, "blocks", "reason")
        targets = _targets(body)
        reason = body.parse("reason", parsing.reason) or ""
        body.report.raise_any()

        def work() -> idempotency.Stored:
            results = reclaim.reclaim_all(targets, author=views.author(request, reason))
            return idempotency.Stored(
                200, {"results": [_result_shape(result) for result in results]}
            )

        return views.answer(views.run_once(request, work).answer)


def _targets(body: object_reader.Fields) -> list[reclaim.ReclaimTarget]:
    values = body.data.get("blocks")
    if not isinstance(values, list) or not 1 <= len(values) <= MOST:
        message = f"a list of 1 to {MOST} blocks is expected"
        body.report.add("blocks", "wrong_type", message)
        return []
    targets = []
    for block_fields in body.objects("blocks"):
        block_fields.only("id", "holder", "org", "allocated_at")
        targets.append(_target(block_fields, block_fields.parse("id", _id) or 0))
    return targets


def _id(value: object, field: str) -> int:
    return parsing.integer(value, field, least=1, most=(1 << 63) - 1)


def _target(body: object_reader.Fields, block_id: int) -> reclaim.ReclaimTarget:
    holder = body.parse("holder", allocations.holder)
    org = body.parse("org", allocations.identifier) if body.has("org") else None
    allocated_at = body.parse("allocated_at", _moment) if body.has("allocated_at") else None
    kind, name, uid = (holder.kind, holder.id, holder.uid) if holder else ("", "", "")
    return reclaim.ReclaimTarget(block_id, kind, name, uid or None, org, allocated_at)


def _moment(value: object, field: str) -> datetime:
    return query.moment(parsing.text(value, field), field)


def _result_shape(result: reclaim.ReclaimResult) -> dict[str, Any]:
    error = result.error
    return {
        "id": result.target.block_id,
        "outcome": listing.outcome_code(result),
        "block": result.block,
        "code": error.code if error else "",
        "message": error.message if error else "",
    }


def _filter_rows(parameters: query.Query) -> QuerySet[Leak]:
    state = parameters.parse("state", query.choice("leaked", "suspected"))
    return _filter_by_location(
        parameters,
        detection.suspected_leaks() if state == "suspected" else detection.confirmed_leaks(),
    )


def _filter_by_location(parameters: query.Query, rows: QuerySet[Leak]) -> QuerySet[Leak]:
    if cluster := parameters.parse("cluster", lookups.cluster):
        rows = rows.filter(cluster=cluster)
    if pools := parameters.parse("pool", lookups.pools):
        rows = rows.filter(block__pool__in=pools)
    for name in ("holder_kind", "holder_id", "source"):
        if value := parameters.text(name):
            rows = rows.filter(**{name: value})
    for name in ("org", "env"):
        if value := parameters.text(name):
            rows = rows.filter(**{f"block__{name}": value})
    return _filter_by_time(parameters, rows)


def _filter_by_time(parameters: query.Query, rows: QuerySet[Leak]) -> QuerySet[Leak]:
    if since := parameters.parse("since", query.moment):
        rows = rows.filter(missed_at__gte=since)
    if until := parameters.parse("until", query.moment):
        rows = rows.filter(missed_at__lt=until)
    return rows
