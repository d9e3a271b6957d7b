"""Keyset pagination: a cursor identifies the last row of a page, so that every page costs the same.

`{"next": URL or null, "previous": URL or null, "results": [...]}`; `limit` is 1 to 1,000.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet
from rest_framework.request import Request

from pools.platform.rest import keyset, query

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
    limit = parameters.parse("limit", query.integer(1, keyset.MAX_LIMIT)) or keyset.DEFAULT_LIMIT
    cursor = parameters.parse("cursor", keyset.decode_cursor)
    selected = parameters.parse("fields", query.names(fields))
    parameters.raise_problems()
    order = orderings[ordering.removeprefix("-")]
    backward, after = (cursor[0], cursor[1]) if cursor else (False, None)
    descending = ordering.startswith("-") is not backward
    if after is not None:
        keyset.check_cursor(rows.model, order, after)
        rows = rows.filter(keyset.rows_after(order, after, descending=descending))
    sign = "-" if descending else ""
    ordered = rows.order_by(*(sign + column for column in order))
    page_rows = list(ordered.values(*columns)[: limit + 1])
    has_more = len(page_rows) > limit
    page_rows = page_rows[:limit]
    if backward:
        page_rows.reverse()
    ends = [
        [keyset.plain_value(row[column]) for column in order]
        for row in (page_rows[:1] + page_rows[-1:])
    ]
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


def _link(request: Request, ends: list[list[Any]], end: int, *, backward: bool) -> str:
    text = json.dumps([backward, ends[end]], separators=(",", ":"))
    parameters = request.query_params.copy()
    parameters["cursor"] = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
    return request.build_absolute_uri(f"{request.path}?{parameters.urlencode()}")
