"""Filters of lists and parameters of other endpoints: django-filter's filters, read as strictly as bodies.

django-filter declares the filters and describes them to OpenAPI. Its form does not read them: it accepts
unknown and repeated parameters, and is built anew for each request.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import django_filters
from django.db.models import Expression, Q, QuerySet
from django_filters import rest_framework
from drf_spectacular.drainage import set_override
from drf_spectacular.utils import OpenApiParameter
from rest_framework.request import Request

from pools.core import holders
from pools.platform.rest import query

Parser = Callable[[str, str], Any]  # (value, parameter) -> value; InvalidInput
Endpoint = TypeVar("Endpoint", bound=Callable[..., Any])


class Filter(django_filters.Filter):
    """One parameter, read by `parser`, or by the FilterSet's method of this name; without one any text is taken.

    With `repeated` the parameter may be given several times; its value is the list of the parsed values.
    Give `field_name` with an optional `lookup_expr`, `select`: a function of the rows and the value that
    returns the rows that match, or `method`: the name of a method of the FilterSet with (rows, name, value).
    """

    def __init__(
        self,
        parser: Parser | str | None = None,
        *,
        schema: dict[str, Any] | None = None,
        help_text: str = "",
        repeated: bool = False,
        select: Callable[[QuerySet[Any], Any], QuerySet[Any]] | None = None,
        **options: Any,
    ) -> None:
        self.repeated, self.select = repeated, select
        self.parser, self.method_name = parser, options.pop("method", None)
        super().__init__(help_text=help_text, **options)  # type: ignore[no-untyped-call]
        self.schema = {"type": "string", **(schema or {})}
        description = {"description": help_text} if help_text else {}
        set_override(self, "field", self.schema | description)

    def read(self, parameters: query.Query, name: str, filterset: Any = None) -> Any:
        """The parsed value of the request; None without one."""
        parser = getattr(filterset, self.parser) if isinstance(self.parser, str) else self.parser
        if parser is None:
            return parameters.text(name)
        return (parameters.parse_each if self.repeated else parameters.parse)(name, parser)

    def describe(self, name: str) -> OpenApiParameter:
        """The OpenAPI description of a parameter that filters no list."""
        return OpenApiParameter(
            name,
            self.schema,
            enum=self.schema.get("enum"),
            description=self.extra["help_text"],
            required=self.extra["required"],
        )


def parameters(**declared: Filter) -> Callable[[Endpoint], Endpoint]:
    """Declare the query parameters of an endpoint, whose view reads them by `query_values`."""

    def declare(endpoint: Endpoint) -> Endpoint:
        vars(endpoint)["parameters"] = declared
        return endpoint

    return declare


def choice(*values: str, **options: Any) -> Filter:
    """A parameter that is one of some words."""
    return Filter(query.choice(*values), schema={"enum": list(values)}, **options)


def flag(**options: Any) -> Filter:
    """A parameter that is true or false."""
    return Filter(query.flag, schema={"type": "boolean"}, **options)


def condition(query: Q, **options: Any) -> Filter:
    """A flag that selects the rows that match a condition, or the others."""
    return flag(select=lambda rows, value: rows.filter(query if value else ~query), **options)


def integer(least: int, most: int, **options: Any) -> Filter:
    """A parameter that is a whole number between two."""
    schema = {"type": "integer", "minimum": least, "maximum": most}
    return Filter(query.integer(least, most), schema=schema, **options)


def number(least: int, most: int, **options: Any) -> Filter:
    """An integer whose bounds the words of its description give."""
    return Filter(query.integer(least, most), schema={"type": "integer"}, **options)


def cidr(**options: Any) -> Filter:
    """A parameter that is a CIDR or an address."""
    return Filter(query.cidr, schema={"format": "cidr"}, **options)


def address(**options: Any) -> Filter:
    """A parameter that is an address."""
    return Filter(query.address, schema={"format": "ip"}, **options)


def time(**options: Any) -> Filter:
    """A parameter that is a time of RFC 3339."""
    return Filter(holders.parse_timestamp, schema={"format": "date-time"}, **options)


class FilterSet(django_filters.FilterSet):
    """The filters of one list. `parameters` of the view collects what is wrong with their values."""

    base_filters: Mapping[str, Any]
    sort_key_pattern = ""  # of the names of `sort_keys`, for the OpenAPI document

    def __init__(
        self, data: Any, queryset: QuerySet[Any], *, request: Request, parameters: query.Query
    ) -> None:
        # Not the parent's: it copies every filter for each request.
        self.data, self.queryset = data, queryset
        self.request, self.parameters = request, parameters
        self.filters = self.base_filters

    @classmethod
    def sort_keys(cls, model: Any) -> Mapping[str, Expression]:
        """Expressions by which the list can be ordered beside the view's `orderings`, by their names."""
        return {}

    def values(self) -> dict[str, Any]:
        """The values in the request by the names of their filters, where no queryset is filtered."""
        values = {
            name: filter_.read(self.parameters, name, self)
            for name, filter_ in self.filters.items()
        }
        return {name: value for name, value in values.items() if value is not None}

    @property
    def qs(self) -> QuerySet[Any]:
        rows: QuerySet[Any] = self.queryset
        for name, filter_ in self.filters.items():
            value = filter_.read(self.parameters, name, self)
            if value is None:
                continue
            if filter_.select:
                rows = filter_.select(rows, value)
            elif filter_.method_name:
                rows = getattr(self, filter_.method_name)(rows, name, value)
            else:
                rows = filter_.filter(rows, value)
        return rows


class FilterBackend(rest_framework.DjangoFilterBackend):
    """Filters a list by the view's `filterset_class`; the paginator reports what is wrong."""

    def filter_queryset(
        self, request: Request, queryset: QuerySet[Any], view: Any
    ) -> QuerySet[Any]:
        if view.filterset_class is None:
            return queryset
        return bind(view, request, queryset).qs


def bind(view: Any, request: Request, queryset: QuerySet[Any]) -> FilterSet:
    """Return the view's filters with the values of the request."""
    filterset: FilterSet = view.filterset_class(
        request.query_params, queryset, request=request, parameters=view.parameters
    )
    return filterset
