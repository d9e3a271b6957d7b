"""Keyset pages: a cursor names the last row of a page, so that a page costs the same anywhere.

DRF's CursorPagination orders by one column and counts rows of equal values by an offset; ours takes as many
columns as make the order total, and reports every wrong parameter at once with those of the filters.
"""

import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any

from django.db import models
from django.db.models import Expression, Q, QuerySet
from django.http import HttpRequest
from netfields import CidrAddressField
from rest_framework import pagination
from rest_framework.request import Request
from rest_framework.response import Response

from pools.core import errors
from pools.platform.rest import query

DEFAULT_LIMIT = 100
MAX_LIMIT = 1000

# An ordering: the columns that make it total, each ascending; "-" before its name turns it around.
Orderings = Mapping[str, Sequence[str]]
_DECIMAL = re.compile(r"-?[0-9]{1,31}(\.[0-9]{1,15})?")
_LINK = {"type": "string", "format": "uri", "nullable": True}


class _Pages(pagination.BasePagination):
    """`{"next": URL or null, "previous": URL or null, "results": [...]}`; `limit` is 1 to 1,000."""

    cursor_text = "The cursor of a `next` link."

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        properties = {"next": _LINK, "previous": _LINK, "results": schema}
        return {"type": "object", "required": list(properties), "properties": properties}

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        limit = {"type": "integer", "minimum": 1, "maximum": MAX_LIMIT, "default": DEFAULT_LIMIT}
        return [
            _parameter("limit", limit, "Rows of a page."),
            _parameter("cursor", {"type": "string"}, self.cursor_text),
        ]


class KeysetPagination(_Pages):
    """Pages of rows of a table; the view names its `orderings` and the default one in `ordering`."""

    cursor_text = "The cursor of a `next` or `previous` link."

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        """The rows of the page. InvalidInput with all that is wrong with the request's parameters."""
        parameters: query.Query = view.parameters
        ordering, key = _parse_ordering(view, queryset.model)
        limit = parameters.parse("limit", query.integer(1, MAX_LIMIT)) or DEFAULT_LIMIT
        cursor = parameters.parse("cursor", decode_cursor)
        self.chosen_fields = parameters.parse("fields", query.names(view.field_names()))
        parameters.raise_problems()
        name = ordering.removeprefix("-")
        columns = (name, "id") if key else view.orderings[name]
        queryset = queryset.annotate(**{name: key}) if key else queryset
        backward, values = cursor or (False, None)
        descending = ordering.startswith("-") is not backward
        if values is not None:
            check_cursor(queryset, columns, values)
            queryset = queryset.filter(rows_after(columns, values, descending=descending))
        if view.keys_only:
            queryset = queryset.values("pk", *columns)
        sign = "-" if descending else ""
        rows = list(queryset.order_by(*(sign + column for column in columns))[: limit + 1])
        more, rows = len(rows) > limit, rows[:limit]
        if backward:
            rows.reverse()
        self.next_link = self.previous_link = None
        if rows and (more or backward):
            self.next_link = link(request, rows[-1], columns, backward=False)
        if rows and (more if backward else values is not None):
            self.previous_link = link(request, rows[0], columns, backward=True)
        return rows

    def get_paginated_response(self, data: Any) -> Response:
        results = data
        if self.chosen_fields:
            # A list of several kinds of objects has fields that some of them lack.
            results = [
                {name: row[name] for name in self.chosen_fields if name in row} for row in data
            ]
        return Response(
            {"next": self.next_link, "previous": self.previous_link, "results": results}
        )

    def get_schema_operation_parameters(self, view: Any) -> list[dict[str, Any]]:
        names: dict[str, Any] = {"enum": _names(view.orderings)}
        if view.filterset_class is not None and view.filterset_class.sort_key_pattern:
            names = {"anyOf": [names, {"pattern": view.filterset_class.sort_key_pattern}]}
        ordering = {"type": "string", "default": view.ordering, **names}
        return [
            *super().get_schema_operation_parameters(view),
            _parameter("ordering", ordering, "The order of the rows; `-` reverses it."),
            _parameter("fields", {"type": "string"}, "Only these fields, separated by commas."),
        ]


class NumberPagination(_Pages):
    """Pages of the history: a cursor is the event number below which the search continues."""

    def read(self, parameters: query.Query) -> tuple[int, int | None]:
        """Return (limit, cursor) of the request."""
        limit = parameters.parse("limit", query.integer(1, MAX_LIMIT)) or DEFAULT_LIMIT
        return limit, parameters.parse("cursor", query.integer(1, 10**17))

    def document(self, request: Request, results: Any, below: int | None) -> dict[str, Any]:
        next_link = None if below is None else page_url(request, str(below))
        return {"next": next_link, "previous": None, "results": results}


class OnePage(pagination.BasePagination):
    """All rows of a short list: `{"results": [...]}`."""

    def paginate_queryset(self, queryset: Any, request: Request, view: Any = None) -> list[Any]:
        view.parameters.raise_problems()
        return list(queryset)

    def get_paginated_response(self, data: Any) -> Response:
        return Response({"results": data})

    def get_paginated_response_schema(self, schema: dict[str, Any]) -> dict[str, Any]:
        return {"type": "object", "required": ["results"], "properties": {"results": schema}}


def _parse_ordering(view: Any, model: type[models.Model]) -> tuple[str, Expression | None]:
    """Return the ordering of the request, and its expression if it is none of the view's `orderings`."""
    sort_keys: dict[str, Expression] = {}

    def parse(value: str, parameter: str) -> str:
        if value.removeprefix("-") not in view.orderings and view.filterset_class is not None:
            sort_keys.update(view.filterset_class.sort_keys(model))
        return query.choice(*_names([*view.orderings, *sort_keys]))(value, parameter)

    ordering = view.parameters.parse("ordering", parse) or view.ordering
    return ordering, sort_keys.get(ordering.removeprefix("-"))


def _names(orderings: Iterable[str]) -> list[str]:
    orderings = [*orderings]
    return [*orderings, *(f"-{name}" for name in orderings)]


def _parameter(name: str, schema: dict[str, Any], text: str) -> dict[str, Any]:
    return {"name": name, "in": "query", "required": False, "description": text, "schema": schema}


def rows_after(columns: Sequence[str], values: Sequence[Any], *, descending: bool) -> Q:
    """Rows after these values in the order of the columns."""
    lookup = "lt" if descending else "gt"
    condition = Q()
    equal: dict[str, Any] = {}
    for column, value in zip(columns, values, strict=True):
        condition |= Q(**equal, **{f"{column}__{lookup}": value})
        equal[column] = value
    return condition


def link(
    request: Request | HttpRequest, row: Any, columns: Sequence[str], *, backward: bool
) -> str:
    """Return the URL of the page after, or before, a row: a model instance or a dict of its columns."""
    read = row.get if isinstance(row, dict) else partial(getattr, row)
    values = [plain_value(read(column)) for column in columns]
    text = json.dumps([backward, values], separators=(",", ":"), ensure_ascii=False)
    return page_url(request, base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))


def page_url(request: Request | HttpRequest, cursor: str) -> str:
    """Return the URL of the same list from another cursor on."""
    parameters = request.GET.copy()
    parameters["cursor"] = cursor
    return request.build_absolute_uri(f"{request.path}?{parameters.urlencode()}")


def plain_value(value: Any) -> Any:
    if isinstance(value, Decimal):
        return f"{value:f}"
    return value if isinstance(value, int | str) else str(value)


def decode_cursor(text: str, _parameter: str) -> tuple[bool, list[Any]]:
    try:
        decoded = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
        backward, values = json.loads(decoded)
    except (ValueError, TypeError, RecursionError):
        raise _unusable(text) from None
    if not isinstance(backward, bool) or not isinstance(values, list):
        raise _unusable(text)
    return backward, values


def check_cursor(rows: QuerySet[Any], columns: Sequence[str], values: list[Any]) -> None:
    """A cursor comes from outside: its values must be such as the columns of this list have."""
    computed = rows.query.annotations
    fields = [
        computed[column].output_field if column in computed else rows.model._meta.get_field(column)
        for column in columns
    ]
    if len(values) != len(fields) or not all(map(_fits, fields, values)):
        raise _unusable("")


def _fits(field: Any, value: Any) -> bool:
    if isinstance(field, CidrAddressField):
        return isinstance(value, str) and _is_cidr(value)
    if isinstance(field, models.CharField | models.TextField):
        return isinstance(value, str) and value.isprintable()
    if isinstance(field, models.DecimalField):
        return isinstance(value, str) and bool(_DECIMAL.fullmatch(value))
    return isinstance(value, int) and not isinstance(value, bool) and abs(value) < 1 << 62


def _is_cidr(value: str) -> bool:
    try:
        query.cidr(value, "cursor")
    except errors.InvalidInput:
        return False
    return True


def _unusable(text: str) -> errors.InvalidInput:
    return errors.InvalidInput.for_field("cursor", "cursor", "is not a cursor of this list", text)
