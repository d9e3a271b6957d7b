"""Columns of the admin's lists."""

from collections.abc import Callable
from functools import reduce
from typing import Any

from django.db.models import Expression
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from pools.platform.admin import display


class Column:
    """A column of `list_display`: its name, heading and cell, and the field or expression that orders the list by it.

    Django takes any callable with these attributes. A column without `ordering` cannot be sorted.
    """

    def __init__(
        self,
        name: str,
        title: StrOrPromise,
        cell: Callable[[Any], object],
        *,
        ordering: str | Expression | None = None,
    ) -> None:
        self.__name__ = name
        self.short_description = title
        self.admin_order_field = ordering
        self.cell = cell

    def __call__(self, row: Any) -> Any:
        return self.cell(row)


def read(row: Any, path: str) -> Any:
    """Return an attribute of a row; `pool.cluster` follows relations."""
    return reduce(getattr, path.split("."), row)


def _attribute(
    path: str, title: StrOrPromise, cell: Callable[[Any], object], ordering: str | Expression | None
) -> Column:
    name = path.rpartition(".")[2]
    return Column(name, title, lambda row: cell(read(row, path)), ordering=ordering)


def text(path: str, title: StrOrPromise, *, ordering: str | None = None) -> Column:
    """A value as it is; a dash if it is empty."""
    return _attribute(path, title, lambda value: value or display.DASH, ordering)


def code(path: str, title: StrOrPromise) -> Column:
    """A name of a program, in monospace."""
    return _attribute(
        path,
        title,
        lambda value: format_html('<code class="cad-mono cad-nowrap">{}</code>', value),
        None,
    )


def label(field: str, title: StrOrPromise, *, ordering: str | None = None) -> Column:
    """The label of a model field with choices."""
    return Column(
        field, title, lambda row: getattr(row, f"get_{field}_display")(), ordering=ordering
    )


def timestamp(path: str, title: StrOrPromise, *, ordering: str | None = None) -> Column:
    return _attribute(path, title, display.timestamp, ordering)


def address(path: str, title: StrOrPromise, *, ordering: str | None = None) -> Column:
    return _attribute(
        path, title, lambda value: display.address(value) if value else display.DASH, ordering
    )


def state(path: str, title: StrOrPromise, *, ordering: str | Expression | None = None) -> Column:
    return _attribute(path, title, display.state, ordering)


def number(path: str, title: StrOrPromise, *, ordering: str | None = None) -> Column:
    return _attribute(path, title, display.number, ordering)


def link(path: str, title: StrOrPromise, *, ordering: str | None = None) -> Column:
    """A value as a link to the page of the row."""
    return Column(
        path, title, lambda row: display.row_link(row, read(row, path)), ordering=ordering
    )


def related(
    path: str, title: StrOrPromise, *, text: str = "", ordering: str | None = None
) -> Column:
    """A link to a related row; its text is the related row's attribute `text`, by default its name."""
    return _attribute(
        path,
        title,
        lambda row: display.row_link(row, getattr(row, text) if text else ""),
        ordering,
    )


def holder(*, ordering: str | None = None) -> Column:
    """The holder of a block, an event or a request, as a link to its search results."""
    cell = lambda row: display.holder(row.holder_kind, row.holder_id)  # noqa: E731
    return Column("holder", _("holder"), cell, ordering=ordering)
