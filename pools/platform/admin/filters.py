"""Filters of the admin's lists: functions that return a filter class for `list_filter`."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from django.db.models import Choices, Q, QuerySet
from django.db.models.enums import ChoicesType
from django.http import HttpRequest
from django_stubs_ext import StrOrPromise
from unfold.contrib.filters.admin import DropdownFilter

from pools.platform.admin import lists

Offered = Callable[[HttpRequest], Iterable[tuple[object, object]]]  # (value, label) of each choice
# From the request, all rows and the chosen value to the rows that match.
Apply = Callable[[HttpRequest, QuerySet[Any], str], QuerySet[Any]]

_FEW = 1000  # related rows whose ids a statement names


class ChoiceFilter(DropdownFilter):
    """A filter whose choices and condition are functions; the functions below make subclasses of it."""

    offered: Offered
    apply: Apply
    has_default = False  # True: `apply` is called with "" if nothing is chosen

    def lookups(self, request: HttpRequest, _admin: Any) -> list[tuple[str, str]]:
        return [(str(value), str(label)) for value, label in self.offered(request)]

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        value = self.value() or ""
        return self.apply(request, rows, value) if value or self.has_default else rows

    def label(self) -> str:
        """Return `state: draining`, or "" if nothing is selected."""
        label = dict(self.lookup_choices).get(self.value() or "")
        return f"{self.title}: {label}" if label else ""


class ValuesFilter(ChoiceFilter):
    """A filter by a column, which offers several values at once: `?level=error&level=warning`."""

    multiple = True
    all_option: Any = None
    lookup: str
    select: Callable[[QuerySet[Any], Any], QuerySet[Any]] | None = None

    def __init__(self, request: HttpRequest, params: dict[str, Any], *options: Any) -> None:
        self._values = [value for value in params.get(str(self.parameter_name), ()) if value]
        super().__init__(request, params, *options)

    def value(self) -> Any:
        return self._values

    def queryset(self, request: HttpRequest, rows: QuerySet[Any]) -> QuerySet[Any]:
        if not self._values:
            return rows
        if self.select is not None:
            return self.select(rows, self._values)
        return rows.filter(**{f"{self.lookup}__in": self._values})

    def label(self) -> str:
        """Return `level: error, warning`, or "" if nothing is selected."""
        labels = [label for value, label in self.lookup_choices if value in self._values]
        return f"{self.title}: {', '.join(map(str, labels))}" if labels else ""


def subclass(base: type[Any], title: StrOrPromise, parameter: str, **attributes: Any) -> type[Any]:
    """Return a class of a filter with these attributes, functions as static methods."""
    names = {
        name: staticmethod(value) if callable(value) else value
        for name, value in attributes.items()
    }
    names |= {"title": title, "parameter_name": parameter}
    return type(f"{parameter.title()}Filter", (base,), names)


def custom(
    title: StrOrPromise,
    parameter: str,
    choices: Offered | type[Choices] | Mapping[str, StrOrPromise],
    apply: Apply,
    *,
    has_default: bool = False,
) -> type[ChoiceFilter]:
    """Filter with a function of the request, the rows and the chosen value."""
    options = {"offered": _offered(choices), "apply": apply, "has_default": has_default}
    return subclass(ChoiceFilter, title, parameter, **options)


def by_value(
    title: StrOrPromise,
    parameter: str,
    choices: Offered | type[Choices] | Mapping[str, StrOrPromise],
    lookup: str = "",
    select: Callable[[QuerySet[Any], Any], QuerySet[Any]] | None = None,
) -> type[ChoiceFilter]:
    """Filter by the values of the column `lookup`, by default the one that is named as the parameter.

    `select` returns the rows with one of the values, if it is not that column alone.
    """
    options = {"offered": _offered(choices), "lookup": lookup or parameter, "select": select}
    return subclass(ValuesFilter, title, parameter, **options)


def by_id(title: StrOrPromise, parameter: str, choices: Offered, lookup: str) -> type[ChoiceFilter]:
    """Filter by a foreign key, also of a related row; a value that is no id matches no row."""
    return custom(title, parameter, choices, apply_key(lookup))


def apply_key(lookup: str) -> Apply:
    """Return the function that filters by a foreign key."""
    relation, _relations, column = lookup.partition("__")

    def apply(_request: HttpRequest, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        if not column:
            return rows.filter(**{lookup: lists.parse_id(value)})
        # The related rows first, if they are few: the index of the list's order begins with the key to them.
        related: Any = rows.model._meta.get_field(relation).related_model
        key = lists.parse_id(value)
        ids = list(related.objects.filter(**{column: key}).values_list("pk", flat=True)[: _FEW + 1])
        return rows.filter(**({f"{relation}__in": ids} if len(ids) <= _FEW else {lookup: key}))

    return apply


def by_condition(
    title: StrOrPromise, parameter: str, conditions: Mapping[str, tuple[StrOrPromise, Q]]
) -> type[ChoiceFilter]:
    """Filter by one of some conditions: (label, condition) by value. Any other value matches all rows."""

    def apply(_request: HttpRequest, rows: QuerySet[Any], value: str) -> QuerySet[Any]:
        return rows.filter(conditions[value][1]) if value in conditions else rows

    labels = {value: label for value, (label, _condition) in conditions.items()}
    return custom(title, parameter, labels, apply)


def _offered(choices: Offered | type[Choices] | Mapping[str, StrOrPromise]) -> Offered:
    if isinstance(choices, Mapping):
        pairs: Iterable[tuple[object, object]] = choices.items()
    elif isinstance(choices, ChoicesType):
        # An empty value is that of a row without a value; in a filter it would mean all rows.
        pairs = [(value, label) for value, label in choices.choices if value]
    else:
        return choices
    return lambda _request: pairs
