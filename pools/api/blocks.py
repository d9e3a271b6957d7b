"""blocks/: list blocks, release a block, end a cooldown."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools import tasks
from pools.api import allocations, lookups
from pools.api.schemas import endpoints
from pools.core import block_fields, errors
from pools.models import AddressSpace, Block, Pool
from pools.models.blocks import LIVE, BlockState
from pools.models.pools import Category
from pools.platform import idempotency
from pools.platform.rest import pagination, parsing, query, views
from pools.register.allocator import allocation

# "cidr" sorts by address within each address space: that is the order of an index.
_ORDERINGS = {"id": ("id",), "cidr": ("space_id", "cidr")}


class Blocks(views.View):
    needs = {"GET": ("pools.view_block",)}

    @extend_schema(**endpoints.BLOCKS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = _filter_rows(parameters)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings=_ORDERINGS,
                fields=endpoints.BLOCK_FIELDS,
                shape=shapes,
            )
        )


class BlockView(views.View):
    needs = {"GET": ("pools.view_block",)}

    @extend_schema(**endpoints.BLOCK)
    def get(self, request: Request, block_id: int) -> views.Answer:
        rows = [dict(row) for row in Block.objects.filter(pk=block_id, state__in=LIVE).values()]
        if not rows:
            raise errors.NotFound("There is no such block.")
        return views.answer(shapes(rows)[0])


class Release(views.View):
    needs = {"POST": ("pools.allocate",)}

    @extend_schema(**endpoints.RELEASE)
    def post(self, request: Request, block_id: int) -> views.Answer:
        body = parsing.fields(request, "holder", "org", "force", "reason")
        force = body.flag("force")
        holder = None if force else body.parse("holder", allocations.holder)
        org = body.parse("org", allocations.identifier) or "" if body.has("org") else ""
        reason = body.parse("reason", parsing.reason) or "" if force or body.has("reason") else ""
        body.report.raise_any()
        if force:
            views.require(request, "pools.force_release")
        author = views.author(request, reason)

        def work() -> idempotency.Stored:
            result = allocation.release(block_id, holder, author=author, org=org, force=force)
            if result.has_pending_requests:
                tasks.nudge(result.block["pool_id"])
            return idempotency.Stored(200, result.block)

        return views.answer(views.run_once(request, work).answer)


class EndCooldown(views.View):
    needs = {"POST": ("pools.force_release",)}

    @extend_schema(**endpoints.END_COOLDOWN)
    def post(self, request: Request, block_id: int) -> views.Answer:
        body = parsing.fields(request, "reason")
        reason = body.parse("reason", parsing.reason) or ""
        body.report.raise_any()

        def work() -> idempotency.Stored:
            block = allocation.skip_cooldown(block_id, author=views.author(request, reason))
            tasks.nudge(block["pool_id"])
            return idempotency.Stored(200, block)

        return views.answer(views.run_once(request, work).answer)


def _filter_rows(parameters: query.Query) -> QuerySet[Block]:
    rows = _filter_by_location(parameters, Block.objects.filter(state__in=LIVE))
    if state := parameters.parse("state", query.choice(BlockState.HELD, BlockState.COOLING)):
        rows = rows.filter(state=state)
    for name in ("holder_kind", "holder_id", "org", "env"):
        if value := parameters.text(name):
            rows = rows.filter(**{name: value})
    for kind in ("node", "instance"):
        if value := parameters.text(kind):
            rows = rows.filter(holder_kind=kind, holder_id=value)
    if category := parameters.parse("category", query.choice(*Category.values)):
        rows = rows.filter(category=category)
    if family := parameters.parse("family", query.choice("4", "6")):
        rows = rows.filter(family=int(family))
    return rows


def _filter_by_location(parameters: query.Query, rows: QuerySet[Block]) -> QuerySet[Block]:
    if cluster := parameters.parse("cluster", lookups.cluster):
        rows = rows.filter(space__in=list(_spaces(cluster.pk)))
    if pools := parameters.parse("pool", lookups.pools):
        spaces = Pool.objects.filter(pk__in=pools).values_list("space_id", flat=True)
        rows = rows.filter(pool__in=pools, space__in=list(spaces))
    if within := parameters.parse("within", query.cidr):
        # With the list of spaces, PostgreSQL reads one range of the index (space, cidr) for each.
        rows = rows.filter(cidr__net_contained_or_equal=within, space__in=list(_spaces()))
    return rows


def _spaces(cluster_id: int | None = None) -> QuerySet[AddressSpace, int]:
    spaces = AddressSpace.objects.values_list("pk", flat=True)
    return spaces if cluster_id is None else spaces.filter(cluster_id=cluster_id)


def shapes(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the JSON objects of block rows, with the names of their pools and clusters."""
    pools = Pool.objects.filter(pk__in={row["pool_id"] for row in rows})
    names = {
        pk: (name, cluster)
        for pk, name, cluster in pools.values_list("pk", "name", "cluster__name")
    }
    return [_shape(names, row) for row in rows]


def _shape(names: dict[int, tuple[str, str]], row: dict[str, Any]) -> dict[str, Any]:
    pool, cluster = names[row["pool_id"]]
    return {**block_fields.block_answer(row, pool=pool, cluster=cluster)}
