"""Keyset pages: a cursor names the last row of a page, so that a page costs the same anywhere.

`{"next": URL or null, "previous": URL or null, "results": [...]}`; `limit` is 1 to 1,000.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.db import models
from django.db.models import Q, QuerySet
from netfields import CidrAddressField
from rest_framework.request import Request

from pools.core import errors
from pools.platform.rest import query

DEFAULT = 100
MOST = 1000

# An ordering: the columns that make it total, each ascending; "-" before a name turns it around.
Orderings = Mapping[str, Sequence[str]]
Row = dict[str, Any]


def page(
    request: Request,
    parameters: query.Query,
    rows: QuerySet[Any],
    *,
    orderings: Orderings,
    fields: Collection[str],
    shape: Callable[[list[Row]], list[Any]],
    default: str = "id",
    columns: Collection[str] = (),
) -> dict[str, Any]:
    """One page of `rows` (a queryset, read by `.values()`), each shaped; `fields` are its keys.

    `columns` are those that are read, all by default.
    """
    names = [*orderings, *(f"-{name}" for name in orderings)]
    ordering = parameters.parse("ordering", query.choice(*names)) or default
    limit = parameters.parse("limit", query.integer(1, MOST)) or DEFAULT
    cursor = parameters.parse("cursor", _decoded)
    chosen = parameters.parse("fields", query.names(fields))
    parameters.done()
    order = orderings[ordering.removeprefix("-")]
    backward, after = (cursor[0], cursor[1]) if cursor else (False, None)
    descending = ordering.startswith("-") is not backward
    if after is not None:
        _check(rows, order, after)
        rows = rows.filter(_beyond(order, after, descending=descending))
    sign = "-" if descending else ""
    ordered = rows.order_by(*(sign + column for column in order))
    found = list(ordered.values(*columns)[: limit + 1])
    more = len(found) > limit
    found = found[:limit]
    if backward:
        found.reverse()
    ends = [[_plain(row[column]) for column in order] for row in (found[:1] + found[-1:])]
    return {
        "next": _link(request, ends, -1, backward=False) if more or (backward and found) else None,
        "previous": _link(request, ends, 0, backward=True)
        if (more if backward else after is not None) and found
        else None,
        "results": [{name: row[name] for name in chosen} for row in shape(found)]
        if chosen
        else shape(found),
    }


def _beyond(columns: Sequence[str], values: Sequence[Any], *, descending: bool) -> Q:
    """Rows after these values in the order of the columns."""
    compare = "lt" if descending else "gt"
    beyond = Q()
    same: dict[str, Any] = {}
    for column, value in zip(columns, values, strict=True):
        beyond |= Q(**same, **{f"{column}__{compare}": value})
        same[column] = value
    return beyond


def _plain(value: Any) -> Any:
    return value if isinstance(value, int | str) else str(value)


def _link(request: Request, ends: list[list[Any]], end: int, *, backward: bool) -> str:
    text = json.dumps([backward, ends[end]], separators=(",", ":"))
    parameters = request.query_params.copy()
    parameters["cursor"] = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return request.build_absolute_uri(f"{request.path}?{parameters.urlencode()}")


def _decoded(value: str, _name: str) -> tuple[bool, list[Any]]:
    try:
        text = base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))
        backward, after = json.loads(text)
    except (ValueError, TypeError, RecursionError):
        raise _unusable(value) from None
    if not isinstance(backward, bool) or not isinstance(after, list):
        raise _unusable(value)
    return backward, after


def _check(rows: QuerySet[Any], columns: Sequence[str], after: list[Any]) -> None:
    """A cursor came from outside: its values must be such as the columns of this list have."""
    fields = [rows.model._meta.get_field(column) for column in columns]
    if len(after) != len(fields) or not all(map(_is_key, fields, after)):
        raise _unusable("")


def _is_key(field: Any, value: Any) -> bool:
    if isinstance(field, CidrAddressField):
        return isinstance(value, str) and _is_cidr(value)
    if isinstance(field, models.CharField):
        return isinstance(value, str) and value.isprintable()
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62


def _is_cidr(value: str) -> bool:
    try:
        query.cidr(value, "cursor")
    except errors.InvalidInput:
        return False
    return True


def _unusable(value: str) -> errors.InvalidInput:
    return errors.InvalidInput.for_field("cursor", "cursor", "is not a cursor of this list", value)
