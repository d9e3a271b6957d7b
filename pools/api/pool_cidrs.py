"""The CIDRs and reserved ranges of a pool: as fields of the pool and as resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api.schemas import endpoints
from pools.core import addresses, blocks, errors, object_reader
from pools.core.block_fields import time
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import Drift, Pool, PoolCIDR, ReservedRange
from pools.platform import idempotency
from pools.platform.rest import parsing, views
from pools.register import pools


def family(part: Family | None) -> dict[str, Any] | None:
    """Return the JSON object of one IP family of a pool; requests have the same fields."""
    if part is None:
        return None
    return {
        "mask_size": part.mask_size,
        "cidrs": [
            {"cidr": str(entry.cidr), "reserved_ranges": [str(span) for span in entry.reserved]}
            for entry in part.cidrs
        ],
    }


def families(body: object_reader.Fields) -> dict[int, Family]:
    """Return the families of a body by IP version; a null field counts as absent."""
    parsed = {}
    for version, name in ((4, "ipv4"), (6, "ipv6")):
        if body.has(name):
            parsed[version] = _family(body.section(name), version)
    return parsed


def _family(section: object_reader.Fields, version: int) -> Family:
    section.only("mask_size", "cidrs")
    mask_size = section.parse(
        "mask_size", lambda value, path: blocks.check_mask_size(value, version, field=path)
    )
    if not section.data.get("cidrs"):
        section.report.add(section.path("cidrs"), "required", "a list of CIDRs is expected")
    entries = []
    for path, item in section.items("cidrs"):
        with section.report.collecting():
            entries.append(_entry(item, path, version, section.report))
    return Family(tuple(entries), mask_size or 0)


def _entry(item: object, path: str, version: int, report: object_reader.ProblemReport) -> CidrEntry:
    data = {"cidr": item} if isinstance(item, str) else item
    if not isinstance(data, dict):
        raise errors.InvalidInput.for_field(path, "wrong_type", "an object is expected", item)
    entry = object_reader.Fields(data, path, report)
    entry.only("cidr", "reserved_ranges")
    field = entry.path("cidr")
    if not entry.has("cidr"):
        raise errors.InvalidInput.for_field(field, "required", "is required")
    cidr = addresses.parse_cidr(data["cidr"], field=field)
    if cidr.version != version:
        message = f"an IPv{version} CIDR is expected"
        raise errors.InvalidInput.for_field(field, "mixed_family", message, cidr)
    reserved = []
    for field, value in entry.items("reserved_ranges"):
        with report.collecting():
            span = addresses.parse_range(value, field=field)
            addresses.require_within(span, cidr, field)
            reserved.append(span)
    return CidrEntry(cidr, tuple(reserved))


class PoolCIDRs(views.View):
    needs = {"GET": ("pools.view_pool",), "POST": ("pools.change_pool",)}

    @extend_schema(**endpoints.CIDRS)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        if not Pool.objects.filter(pk=pool_id).exists():
            raise errors.NotFound("There is no such pool.")
        rows = PoolCIDR.objects.filter(pool_id=pool_id).prefetch_related("reserved_ranges")
        return views.answer({"results": [cidr_shape(row) for row in rows]})

    @extend_schema(**endpoints.CIDR_CREATE)
    def post(self, request: Request, pool_id: int) -> views.Answer:
        body = parsing.fields(request, "cidr", "reserved_ranges")
        text = body.data.get("cidr")
        version = 6 if isinstance(text, str) and ":" in text else 4
        entry = _entry(body.data, "", version, body.report)
        body.report.raise_any()

        def work() -> idempotency.Stored:
            added = pools.add_cidr(pool_id, entry, author=views.author(request))
            return idempotency.Stored(201, cidr_shape(added))

        stored = views.run_once(request, work)
        return views.answer(stored.answer, status=stored.status)


class PoolCIDRView(views.View):
    needs = {"DELETE": ("pools.change_pool",)}

    @extend_schema(**endpoints.CIDR_DELETE)
    def delete(self, request: Request, pool_id: int, cidr_id: int) -> views.Answer:
        if not PoolCIDR.objects.filter(pk=cidr_id, pool_id=pool_id).exists():
            raise errors.NotFound("The pool has no such CIDR.")
        waiting = pools.remove_cidr(cidr_id, author=views.author(request))
        if waiting is None:
            return views.no_content()
        return views.answer(cidr_shape(waiting), status=202)


class ReservedRanges(views.View):
    needs = {"POST": ("pools.change_pool",)}

    @extend_schema(**endpoints.RANGE_CREATE)
    def post(self, request: Request, pool_id: int, cidr_id: int) -> views.Answer:
        body = parsing.fields(request, "range", "reason")
        span = body.parse("range", lambda value, field: addresses.parse_range(value, field=field))
        reason = ""
        if body.has("reason"):
            reason = body.parse("reason", parsing.reason) or ""
        body.report.raise_any()
        if span is None or not PoolCIDR.objects.filter(pk=cidr_id, pool_id=pool_id).exists():
            raise errors.NotFound("The pool has no such CIDR.")
        reserved_span = span

        def work() -> idempotency.Stored:
            reserved_range = pools.reserve(
                cidr_id, reserved_span, author=views.author(request), reason=reason
            )
            return idempotency.Stored(201, range_shape(reserved_range))

        stored = views.run_once(request, work)
        return views.answer(stored.answer, status=stored.status)


class ReservedRangeView(views.View):
    needs = {"DELETE": ("pools.change_pool",)}

    @extend_schema(**endpoints.RANGE_DELETE)
    def delete(self, request: Request, pool_id: int, range_id: int) -> views.Answer:
        if not ReservedRange.objects.filter(pk=range_id, pool_id=pool_id).exists():
            raise errors.NotFound("The pool has no such reserved range.")
        pools.unreserve(range_id, author=views.author(request))
        return views.no_content()


def waiting_fields(rows: Sequence[Drift]) -> list[dict[str, Any]]:
    """Return the fields of a pool's object that are not written because other managers own them."""
    return [
        {
            "path": row.path,
            "managers": row.managers,
            "since": time(row.since),
            "drift_id": row.pk,
        }
        for row in rows
    ]


def cidr_shape(cidr: PoolCIDR) -> dict[str, Any]:
    return {
        "id": cidr.pk,
        "cidr": str(cidr.cidr),
        "pending": cidr.pending or None,
        "reserved_ranges": [
            range_shape(reserved_range) for reserved_range in cidr.reserved_ranges.all()
        ],
    }


def range_shape(reserved_range: ReservedRange) -> dict[str, Any]:
    return {
        "id": reserved_range.pk,
        "range": f"{reserved_range.first}-{reserved_range.last}",
        "reason": reserved_range.reason,
    }
