"""Lists of tables with many rows: their filters as text, and an estimated count of a table as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core import paginator
from django.db import connection, models
from django.http import HttpRequest
from django.utils.functional import cached_property

from pools.platform.admin import export

if TYPE_CHECKING:
    from pools.platform.admin.lists import ListAdmin

EXACT = 100_000  # rows; a larger table without a filter is estimated


class EstimatedPaginator(paginator.Paginator[Any]):
    """Counts the rows, but for those of a large table without a filter: PostgreSQL knows about how many there are."""

    @cached_property
    def count(self) -> int:
        rows: Any = self.object_list
        return self.estimate or int(rows.count())

    def page(self, number: int | str) -> paginator.Page[Any]:
        """Return a page. Its ids are read first, so that PostgreSQL sorts and skips these alone, not joined rows.

        The last page is read from the end: an OFFSET would read all rows before it.
        """
        number = self.validate_number(number)
        rows: Any = self.object_list
        ids = rows.values_list("pk", flat=True)
        first = (number - 1) * self.per_page
        if 1 < number == self.num_pages:
            page_ids = ids.reverse()[: self.count - first]
        else:
            page_ids = ids[first : first + self.per_page]
        return paginator.Page(rows.filter(pk__in=list(page_ids)), number, self)

    @cached_property
    def estimate(self) -> int:
        """The number of rows of a large table at the last ANALYZE or VACUUM; 0 where they are counted."""
        rows: Any = self.object_list
        estimate = 0 if rows.query.has_filters() else estimated_rows(rows.model)
        return estimate if estimate > EXACT else 0


class TextList(ChangeList):
    """A list whose filters are given texts that PostgreSQL has, none with NUL, and that has a last page."""

    def get_results(self, request: HttpRequest) -> None:
        """Read the rows of a page, of the last one where there are fewer: rows may be gone since the page was opened."""
        try:
            super().get_results(request)
        except IncorrectLookupParameters:
            pages = self.model_admin.get_paginator(request, self.queryset, self.list_per_page)
            self.page_num = max(1, min(self.page_num, pages.num_pages))
            super().get_results(request)

    def get_filters_params(self, params: Any = None) -> dict[str, list[str]]:
        values = super().get_filters_params(params)
        return {name: [text.replace("\0", " ") for text in values[name]] for name in values}


class BoundedList(TextList):
    """A list that prepares the rows of its page, and ignores an order that it does not offer."""

    most_exported = export.MOST
    model_admin: ListAdmin[Any]

    def get_filters_params(self, params: Any = None) -> dict[str, list[str]]:
        """Refuse what no filter of the list offers: Django would compare any column with it."""
        values = super().get_filters_params(params)
        if values.keys() - {item.parameter_name for item in self.model_admin.offered_filters()}:
            raise IncorrectLookupParameters
        return values

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        rows = list(self.result_list)
        self.model_admin.prepare_rows(request, rows)
        self.result_list = rows

    def get_ordering_field(self, field_name: Any) -> Any:
        """Ignore an order of the URL that the list does not offer."""
        offered = self.sortable_by is None or field_name in self.sortable_by
        return super().get_ordering_field(field_name) if offered else None

    def active_filters(self) -> list[tuple[str, str]]:
        """Return the active filters as text, each with the query of the list without it."""
        choices: list[Any] = self.filter_specs
        return [
            (label, self.get_query_string({choice.parameter_name: None, PAGE_VAR: None}))
            for choice in choices
            if hasattr(choice, "label") and (label := choice.label())
        ]

    @property
    def is_estimated(self) -> bool:
        return bool(getattr(self.paginator, "estimate", 0))


def estimated_rows(model: type[models.Model]) -> int:
    """Return the number of rows of a table according to the last ANALYZE or VACUUM; 0 for a view."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = %s::regclass",  # no text: SQL
            [model._meta.db_table],
        )
        return int(cursor.fetchone()[0])
