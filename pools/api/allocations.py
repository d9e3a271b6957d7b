"""POST pools/{id}/allocations/: the hot path, one round trip to the database after the login."""

from __future__ import annotations

from collections.abc import Callable

from django.urls import reverse
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import requests
from pools.api.schemas import endpoints
from pools.core import addresses, demand, errors, holders, object_reader
from pools.platform.rest import parsing, views
from pools.register.allocator import allocation
from pools.register.allocator import requests as allocator_requests

_FIELDS = ("holder", "holders", "org", "env", "family", "count", "cidr", "wait")
KIND = 63  # characters


class Allocations(views.View):
    needs = {"POST": ("pools.allocate",)}

    @extend_schema(**endpoints.ALLOCATE)
    def post(self, request: Request, pool_id: int) -> views.Answer:
        wanted, wait = read(parsing.fields(request, *_FIELDS))
        done = allocator_requests.allocate(
            pool_id, wanted, author=views.author(request), key=views.key(request), wait=wait
        )
        if isinstance(done, allocation.Allocation):
            return views.answer({"blocks": done.blocks}, status=done.status)
        place = reverse("api:request", args=[done.pk])
        return views.answer(requests.shape(done), status=202, headers={"Location": place})


def read(body: object_reader.Fields) -> tuple[demand.BlockDemand, bool]:
    """What is wanted, and whether to wait for it; InvalidInput with all problems."""
    report = body.report
    wanted = demand.BlockDemand(
        holders=_holders(body),
        families=(family,) if (family := _optional(body, "family", _family)) else (),
        count=_optional(body, "count", _count) or 1,
        org=_optional(body, "org", identifier) or "",
        env=_optional(body, "env", identifier) or "",
        cidr=_optional(body, "cidr", _block),
    )
    wait = body.flag("wait")
    if not report.problems:
        _check_together(wanted, report)
    report.raise_any()
    return wanted, wait


def _check_together(wanted: demand.BlockDemand, report: object_reader.ProblemReport) -> None:
    if len(wanted.holders) * wanted.count > demand.MOST:
        report.add("count", "out_of_range", f"at most {demand.MOST} blocks in one request")
    if wanted.cidr is None:
        return
    if len(wanted.holders) > 1 or wanted.count > 1:
        report.add(
            "cidr", "conflicting_fields", "an exact block is for one holder and a count of 1"
        )
    if wanted.families and wanted.families[0] != wanted.cidr.version:
        message = f"{wanted.cidr} is not an IPv{wanted.families[0]} block"
        report.add("cidr", "mixed_family", message, str(wanted.cidr))


def _optional(
    body: object_reader.Fields, key: str, parser: Callable[[object, str], object_reader.T]
) -> object_reader.T | None:
    return body.parse(key, parser) if body.has(key) else None


def _holders(body: object_reader.Fields) -> tuple[demand.Holder, ...]:
    if not body.has("holders"):
        one = body.parse("holder", holder)
        return (one,) if one else ()
    if body.has("holder"):
        body.report.add("holder", "conflicting_fields", "give either holder or holders")
    listed = body.data["holders"]
    if not isinstance(listed, list) or not 1 <= len(listed) <= demand.MOST:
        body.report.add(
            "holders", "wrong_type", f"a list of 1 to {demand.MOST} holders is expected"
        )
        return ()
    found = [
        one
        for index, value in enumerate(listed)
        if (one := _listed(value, f"holders.{index}", body.report))
    ]
    _check_distinct(found, body.report)
    return tuple(found)


def _listed(value: object, at: str, report: object_reader.ProblemReport) -> demand.Holder | None:
    with report.collecting():
        return holder(value, at)
    return None


def _check_distinct(found: list[demand.Holder], report: object_reader.ProblemReport) -> None:
    seen = set()
    for index, holder in enumerate(found):
        if (holder.kind, holder.id) in seen:
            message = f"{holder.kind} {holder.id} is there twice"
            report.add(f"holders.{index}", "duplicate_holder", message, holder.id)
        seen.add((holder.kind, holder.id))


def holder(value: object, at: str) -> demand.Holder:
    """A holder as requests write it: {"kind", "id", "uid"?}."""
    if not isinstance(value, dict):
        raise errors.InvalidInput.for_field(at, "wrong_type", "an object is expected", value)
    report = object_reader.ProblemReport()
    body = object_reader.Fields(value, at, report)
    body.only("kind", "id", "uid")
    kind = body.parse("kind", _kind)
    name = body.parse("id", identifier)
    uid = _optional(body, "uid", identifier)
    report.raise_any()
    return demand.Holder(kind or "", name or "", uid or "")


def _kind(value: object, at: str) -> str:
    return holders.parse_name(value, field=at, kind="label")


def identifier(value: object, at: str) -> str:
    """The id of a holder, an organisation or an environment."""
    return holders.parse_identifier(value, field=at)


def _family(value: object, at: str) -> int:
    number = parsing.integer(value, at, least=4, most=6)
    if number == 5:
        raise errors.InvalidInput.for_field(at, "out_of_range", "must be 4 or 6", value)
    return number


def _count(value: object, at: str) -> int:
    return parsing.integer(value, at, least=1, most=demand.MOST)


def _block(value: object, at: str) -> addresses.Network:
    return addresses.parse_block(value, field=at)
