"""pools/: pools with their CIDRs and reserved ranges, with ETag and If-Match."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import lookups, pool_cidrs
from pools.api.schemas import endpoints
from pools.cilium import drift
from pools.core import errors, holders, object_reader
from pools.models import Cluster, Drift, Pool
from pools.models.pools import Category
from pools.platform import events, idempotency
from pools.platform.rest import pagination, parsing, query, views
from pools.register import pools, usage

# RFC 9110, 8.8.3 and 5.6.1: entity tags, and lists of them, in which elements may be empty. The
# quantifiers are possessive: a header that does not match is rejected in linear time.
_ENTITY_TAG = r'(?:W/)?"[\x21\x23-\x7e\x80-\xff]*+"'
_TAG = re.compile(_ENTITY_TAG)
_TAGS = re.compile(rf"[ \t,]*+{_ENTITY_TAG}(?:[ \t]*+,[ \t]*+(?:{_ENTITY_TAG})?)*+[ \t]*")
_CHANGED = ("cooldown_seconds", "description", "ipv4", "ipv6", "annotations", "labels")
_CREATED = ("cluster", "name", "category", "allow_first_ip", "allow_last_ip", *_CHANGED)
_READ_ONLY = ("id", "version", "waiting", "utilization", "created_at")
_FIXED = ("cluster", "name", "category", "allow_first_ip", "allow_last_ip")


class Pools(views.View):
    needs = {"GET": ("pools.view_pool",), "POST": ("pools.add_pool",)}

    @extend_schema(**endpoints.POOLS)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows: QuerySet[Pool] = Pool.objects.all()
        if cluster := parameters.parse("cluster", lookups.cluster):
            rows = rows.filter(cluster=cluster)
        if category := parameters.parse("category", query.choice(*Category.values)):
            rows = rows.filter(category=category)
        if name := parameters.text("name"):
            rows = rows.filter(name=name)
        if within := parameters.parse("within", query.cidr):
            rows = rows.filter(cidrs__cidr__net_overlaps=within).distinct()
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",), "name": ("name", "id")},
                fields=endpoints.POOL_FIELDS,
                shape=_page,
            )
        )

    @extend_schema(**endpoints.POOL_CREATE)
    def post(self, request: Request) -> views.Answer:
        body = parsing.fields(request, *_CREATED, *_READ_ONLY)
        spec = _spec(body)
        stored = views.run_once(request, lambda: _create(spec, views.author(request)))
        return views.answer(stored.answer, status=stored.status)


class PoolView(views.View):
    needs = {
        "GET": ("pools.view_pool",),
        "PATCH": ("pools.change_pool",),
        "DELETE": ("pools.delete_pool",),
    }

    @extend_schema(**endpoints.POOL)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        return _answer(get(pool_id))

    @extend_schema(**endpoints.POOL_PATCH)
    def patch(self, request: Request, pool_id: int) -> views.Answer:
        body = parsing.fields(request, *_CHANGED, *_FIXED, *_READ_ONLY)
        pool = get(pool_id)
        change = _change(body, pool)
        expected_version = version(request, pool.version)
        pools.change(pool_id, change, author=views.author(request), version=expected_version)
        return _answer(get(pool_id))

    @extend_schema(**endpoints.POOL_DELETE)
    def delete(self, request: Request, pool_id: int) -> views.Answer:
        expected_version = version(request, get(pool_id).version)
        pools.delete(pool_id, author=views.author(request), version=expected_version)
        return views.no_content()


def get(pool_id: int) -> Pool:
    """Return a pool with its cluster. Raises NotFound."""
    pool = Pool.objects.select_related("cluster").filter(pk=pool_id).first()
    if pool is None:
        raise errors.NotFound("There is no such pool.")
    return pool


def version(request: Request, present: int) -> int | None:
    """Return the version that If-Match requires; None without the header or for `*`.

    RFC 9110, 13.1.1. If the header lists several versions, the `present` one has to be among them.
    Weak tags and tags that are no version match nothing. Raises InvalidInput, VersionMismatch.
    """
    header = request.META.get("HTTP_IF_MATCH")
    if header is None or header.strip() == "*":
        return None
    if not _TAGS.fullmatch(header):
        message = 'If-Match is a list of ETags such as "3", "4", or *.'
        raise errors.InvalidInput.for_field("If-Match", "if_match", message, header)
    tags = [tag.strip('"') for tag in _TAG.findall(header) if not tag.startswith("W/")]
    numbers = [int(tag) for tag in tags if tag.isascii() and tag.isdigit() and len(tag) <= 18]
    if len(numbers) == 1:
        return numbers[0]
    if present not in numbers:
        raise errors.VersionMismatch
    return present


def _answer(pool: Pool) -> views.Answer:
    return views.answer(shape(pool), headers={"ETag": f'"{pool.version}"'})


def shape(pool: Pool) -> dict[str, Any]:
    return _shape(pool, usage.pool_usage(pool), drift.conflicts_of_pool(pool))


def _page(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    ids = [row["id"] for row in rows]
    pools_with_parts = Pool.objects.select_related("cluster").prefetch_related(
        "cidrs__reserved_ranges"
    )
    by_id = pools_with_parts.in_bulk(ids)
    used = usage.usage_by_pool(by_id.values())
    waits = drift.conflicts_of_pools(by_id.values())
    return [
        _shape(by_id[pool_id], used[pool_id], waits.get(pool_id, ()))
        for pool_id in ids
        if pool_id in by_id
    ]


def _shape(pool: Pool, used: dict[int, usage.Usage], waits: Sequence[Drift] = ()) -> dict[str, Any]:
    parts = pools.families(pool)
    return {
        "id": pool.pk,
        "cluster": pool.cluster.name,
        "name": pool.name,
        "category": pool.category,
        "cooldown_seconds": pool.cooldown_seconds,
        "description": pool.description,
        "allow_first_ip": pool.allow_first_ip,
        "allow_last_ip": pool.allow_last_ip,
        "annotations": pool.annotations,
        "labels": pool.labels,
        "ipv4": pool_cidrs.family(parts.get(4)),
        "ipv6": pool_cidrs.family(parts.get(6)),
        "version": pool.version,
        "created_at": pool.created_at.isoformat().replace("+00:00", "Z"),
        "waiting": pool_cidrs.waiting_fields(waits),
        "utilization": {
            f"ipv{family}": _usage(family_usage) for family, family_usage in used.items()
        },
    }


def _usage(family_usage: usage.Usage) -> dict[str, Any]:
    return {
        "capacity": str(family_usage.capacity),
        "held": str(family_usage.held),
        "cooling": str(family_usage.cooling),
        "reserved": str(family_usage.reserved),
        "free": str(family_usage.free),
        "ratio": round(family_usage.ratio, 6),
        "approximate": family_usage.approximate,
    }


def _create(spec: pools.PoolSpec, author: events.Author) -> idempotency.Stored:
    return idempotency.Stored(201, shape(get(pools.create(spec, author=author).pk)))


def _spec(body: object_reader.Fields) -> pools.PoolSpec:
    _refuse(body, _READ_ONLY)
    cluster = body.parse("cluster", _cluster)
    name = body.parse("name", parsing.name)
    category = body.parse("category", partial(parsing.choice, allowed=tuple(Category.values)))
    families = pool_cidrs.families(body)
    cooldown = _cooldown(body)
    first, last = body.flag("allow_first_ip"), body.flag("allow_last_ip")
    annotations, labels = body.string_map("annotations"), body.string_map("labels")
    description = _description(body)
    body.report.raise_any()
    return pools.PoolSpec(
        cluster=cluster or Cluster(),
        name=name or "",
        category=category or "",
        families=families,
        cooldown_seconds=cooldown,
        allow_first_ip=first,
        allow_last_ip=last,
        annotations=annotations,
        labels=labels,
        description=description or "",
    )


def _change(body: object_reader.Fields, pool: Pool) -> pools.PoolChange:
    _refuse(body, _READ_ONLY)
    for name in _FIXED:
        present = pool.cluster.name if name == "cluster" else getattr(pool, name)
        if name in body.data and body.data[name] != present:
            raise errors.ImmutableInUse(f"The {name} of a pool never changes.")
    _refuse_null(body, pool)
    change = pools.PoolChange(
        families=pool_cidrs.families(body),
        cooldown_seconds=_cooldown(body),
        description=_description(body),
        annotations=body.string_map("annotations") if body.has("annotations") else None,
        labels=body.string_map("labels") if body.has("labels") else None,
    )
    body.report.raise_any()
    return change


def _refuse(body: object_reader.Fields, names: tuple[str, ...]) -> None:
    for name in names:
        if name in body.data:
            body.report.add(name, "read_only_field", "is computed and cannot be set")


def _refuse_null(body: object_reader.Fields, pool: Pool) -> None:
    """Report a null that cannot be applied, instead of ignoring it."""
    for name in _CHANGED:
        if name not in body.data or body.data[name] is not None:
            continue
        if name not in {"ipv4", "ipv6"}:
            body.report.add(name, "wrong_type", "null is no value of this field")
        elif pool.mask_size(int(name[-1])) is not None:
            message = "A family of a pool is never removed: delete the pool, or remove its CIDRs."
            raise errors.ImmutableInUse(message)


def _description(body: object_reader.Fields) -> str | None:
    if not body.has("description"):
        return None
    return body.parse("description", parsing.description)


def _cooldown(body: object_reader.Fields) -> int | None:
    if not body.has("cooldown_seconds"):
        return None
    return body.parse(
        "cooldown_seconds", lambda value, field: holders.parse_cooldown(value, field=field)
    )


def _cluster(value: object, field: str) -> Cluster:
    return lookups.cluster(parsing.name(value, field), field)
