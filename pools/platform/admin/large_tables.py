"""Lists of large tables: they are paged through up to a number of rows, and never counted as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core import paginator
from django.db import connection, models
from django.http import HttpRequest
from django.utils.functional import cached_property

from pools.platform import database
from pools.platform.admin import export

if TYPE_CHECKING:
    from pools.platform.admin.lists import ListAdmin

REACH = 10_000  # rows that can be paged through; a search reaches the others


def search_first(rows: models.QuerySet[Any]) -> models.QuerySet[Any]:
    """Return the rows of a search, which are found by one pass over the table before they are sorted.

    Searching in an order, PostgreSQL would rather read the whole index of that order. More than REACH rows
    are so frequent that this is quick: they are left to it.
    """
    with database.in_parallel():
        ids = list(rows.order_by().values_list("pk", flat=True)[: REACH + 1])
    return rows if len(ids) > REACH else rows.filter(pk__in=ids)


class BoundedPaginator(paginator.Paginator[Any]):
    """Counts up to REACH rows; `more` is True if there are more, which only a search reaches.

    An exact count over a million rows costs more than the page itself, and so does a page far
    from the start.
    """

    @cached_property
    def first_rows(self) -> list[Any]:
        """The rows of the first page, and one more if there is a second page."""
        rows: Any = self.object_list
        return list(rows[: self.per_page + 1])

    @cached_property
    def count(self) -> int:
        return min(self._counted, REACH)

    @cached_property
    def _counted(self) -> int:
        if len(self.first_rows) <= self.per_page:  # a search without results reads the table once
            return len(self.first_rows)
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[: REACH + 1].count())

    @property
    def more(self) -> bool:
        return self._counted > REACH


class BoundedList(ChangeList):
    """A list that knows whether it has more rows than can be paged through."""

    most_exported = export.MOST
    queryset: Any
    model_admin: ListAdmin[Any]

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: Any = None
    ) -> models.QuerySet[Any]:
        rows = super().get_queryset(request, exclude_parameters)
        return search_first(rows) if self.query else rows

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        paginator = self.paginator
        if self.page_num == 1 and not self.show_all and isinstance(paginator, BoundedPaginator):
            rows = paginator.first_rows[: self.list_per_page]
        else:
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
    def beyond(self) -> bool:
        paginator: Any = self.paginator
        return bool(paginator.more)


def estimated_rows(model: type[models.Model]) -> int:
    """Return the number of rows of a table according to the last ANALYZE or VACUUM."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = %s::regclass",  # no text: SQL
            [model._meta.db_table],
        )
        return int(cursor.fetchone()[0])
