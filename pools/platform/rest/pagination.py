"""Keyset pagination: a cursor identifies the last row of a page, so that every page costs the same.

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

# The columns of each ordering by its name: together unique, each ascending; "-NAME" reverses it.
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
    """Return one page of `rows`, a queryset that is read by `.values()`.

    `shape` converts the rows of the page; `fields` are the keys of its results. `columns` are read, all
    by default.
    """
    names = [*orderings, *(f"-{name}" for name in orderings)]
    ordering = parameters.parse("ordering", query.choice(*names)) or default
    limit = parameters.parse("limit", query.integer(1, MOST)) or DEFAULT
    cursor = parameters.parse("cursor", _decoded)
    selected = parameters.parse("fields", query.names(fields))
    parameters.done()
    order = orderings[ordering.removeprefix("-")]
    backward, after = (cursor[0], cursor[1]) if cursor else (False, None)
    descending = ordering.startswith("-") is not backward
    if after is not None:
        _check(rows, order, after)
        rows = rows.filter(_beyond(order, after, descending=descending))
    sign = "-" if descending else ""
    ordered = rows.order_by(*(sign + column for column in order))
    page_rows = list(ordered.values(*columns)[: limit + 1])
    has_more = len(page_rows) > limit
    page_rows = page_rows[:limit]
    if backward:
        page_rows.reverse()
    ends = [[_plain(row[column]) for column in order] for row in (page_rows[:1] + page_rows[-1:])]
    return {
        "next": _link(request, ends, -1, backward=False)
        if has_more or (backward and page_rows)
        else None,
        "previous": _link(request, ends, 0, backward=True)
        if (has_more if backward else after is not None) and page_rows
        else None,
        "results": [{name: row[name] for name in selected} for row in shape(page_rows)]
        if selected
        else shape(page_rows),
    }


def _beyond(columns: Sequence[str], values: Sequence[Any], *, descending: bool) -> Q:
    """Return the filter for rows after these values in the order of the columns."""
    compare = "lt" if descending else "gt"
    beyond = Q()
    equal_columns: dict[str, Any] = {}
    for column, value in zip(columns, values, strict=True):
        beyond |= Q(**equal_columns, **{f"{column}__{compare}": value})
        equal_columns[column] = value
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
    """Refuse a cursor whose values do not fit the columns of this list: a client may have made it up."""
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
