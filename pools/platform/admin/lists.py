"""The base class of the admin's lists: what a list shows and which pages it has is data.

A list names its columns (`columns`), filters (`filters`), actions (`action`) and pages (`Page`).
Its paginator does not count a large table.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.contrib import messages
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import PAGE_VAR, ChangeList
from django.core import paginator
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import connection, models
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    QueryDict,
)
from django.urls import URLPattern, path, reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext, ngettext
from unfold import admin as unfold

from pools.platform import database
from pools.platform.admin import display, export, pages, preferences
from pools.platform.admin.columns import Column

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin as Base
    from django_stubs_ext import StrOrPromise
else:
    Base = unfold.ModelAdmin

Row = TypeVar("Row", bound=models.Model)

FILTERS = "_changelist_filters"  # the parameter in which Django keeps the filters of a list
REACH = 10_000  # rows that can be paged through; a search reaches the others
MOST_SORTED = 100_000  # rows of a table that is sorted without an index
EVENTS = "admin:pools_event_changelist"
_DJANGO_PAGES = ("add", "change", "delete", "history")  # their URLs are Django's


def action_page(request: HttpRequest, name: str, **query: Any) -> HttpResponse:
    """Redirect to the page of an action, which returns to the list with its filters."""
    filters = {FILTERS: request.GET.urlencode()}
    return HttpResponseRedirect(reverse(name, query={**query, **filters}))


def list_url(request: HttpRequest, name: str) -> str:
    """Return the URL of the list that an action was started from, with its filters."""
    return reverse(name, query=QueryDict(request.GET.get(FILTERS, "")))


def parse_id(text: str) -> int:
    """Return the id in a query parameter, or 0, which no row has, if the text is no id."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0


class Page:
    """A page of a list, or of a row of it.

    `admin:APP_MODEL_NAME` is the name of its URL, which ends with `path`, by default the name. The
    user needs all `permissions`; a page of a row without any needs the permission to view the row.
    They are checked before the row is read, so that a 404 does not reveal which rows exist.
    """

    def __init__(
        self,
        name: str,
        view: Callable[..., HttpResponseBase],
        *permissions: str,
        path: str = "",
    ) -> None:
        self.name = name
        self.view = view
        self.permissions = permissions
        self.path = path or name


def history(query: Callable[[Any], dict[str, Any]], *permissions: str) -> Page:
    """The history of a row is the list of events, filtered with `query(row)`."""
    return Page(
        "history",
        lambda _request, row: HttpResponseRedirect(reverse(EVENTS, query=query(row))),
        *permissions,
    )


def action(
    name: str,
    title: StrOrPromise,
    page: str,
    *permissions: str,
    most: int = 100,
    **query: str,
) -> Callable[..., HttpResponse]:
    """An action that opens a page with the ids of the selected rows as `id`, at most `most`."""

    def open_page(_admin: Any, request: HttpRequest, rows: models.QuerySet[Any]) -> HttpResponse:
        ids = list(rows.values_list("pk", flat=True)[: most + 1])
        if len(ids) > most:
            messages.warning(
                request,
                ngettext(
                    "Only the first selected row is shown.",
                    "Only the first %(number)s selected rows are shown.",
                    most,
                )
                % {"number": most},
            )
        return action_page(request, page, **query, id=ids[:most])

    open_page.__name__ = name
    open_page.short_description = title  # type: ignore[attr-defined]  # read by Django
    open_page.permissions = permissions  # type: ignore[attr-defined]
    return open_page


def find_ids(rows: models.QuerySet[Any], most: int) -> list[Any]:
    """Return the ids of up to `most` rows of a search, in any order, by one pass over the table.

    Searching in an order, PostgreSQL would rather read the whole index of that order.
    """
    with database.in_parallel():
        return list(rows.order_by().values_list("pk", flat=True)[:most])


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
    many_matches = False  # a search found more rows than the list reaches
    model_admin: ListAdmin[Any]

    def get_queryset(
        self, request: HttpRequest, exclude_parameters: Any = None
    ) -> models.QuerySet[Any]:
        """Find the rows of a search before they are sorted."""
        rows = super().get_queryset(request, exclude_parameters)
        if not self.query:
            return rows
        ids = find_ids(rows, REACH + 1)
        self.many_matches = len(ids) > REACH
        return rows if len(ids) > REACH else rows.filter(pk__in=ids)

    def get_results(self, request: HttpRequest) -> None:
        with self._reading_many() if self.many_matches else contextlib.nullcontext():
            super().get_results(request)
            paginator = self.paginator
            if self.page_num == 1 and not self.show_all and isinstance(paginator, BoundedPaginator):
                rows = paginator.first_rows[: self.list_per_page]
            else:
                rows = list(self.result_list)
        self.model_admin.prepare_rows(request, rows)
        self.result_list = rows

    def _reading_many(self) -> contextlib.AbstractContextManager[None]:
        """PostgreSQL takes a search for text for a rare one, and would sort all rows that it finds."""
        if self.model_admin.finds_neighbours:
            return database.in_parallel(ordered=False)
        return database.by_index()

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


class ListAdmin(Base[Row]):
    """A list whose rows are added, changed and deleted by the pages that it names, not by Django's forms."""

    list_per_page = 100
    list_max_show_all = 200
    list_display_links = None
    empty_value_display = display.DASH
    list_filter_submit = True
    list_fullwidth = True
    show_full_result_count = False
    show_facets = False  # type: ignore[assignment]  # facets count every choice
    paginator = BoundedPaginator
    changelist: ClassVar[type[BoundedList]] = BoundedList
    actions: Sequence[Any] = ()
    # Columns that users may choose, beside those of `list_display`.
    more_columns: ClassVar[tuple[Column | str, ...]] = ()
    # Names of model fields; a Column is sortable if it has an order.
    sortable_by: ClassVar[tuple[str, ...]] = ()
    # The orders that an index serves; by others a table of more than MOST_SORTED rows is not sorted.
    indexed_orders: ClassVar[tuple[str, ...]] = ("id",)
    # Rows that a search finds are neighbours in the order of the list. In this order PostgreSQL would read
    # the table up to them before it finds the first.
    finds_neighbours: ClassVar[bool] = False
    list_pages: ClassVar[Sequence[Page]] = ()
    row_pages: ClassVar[Sequence[Page]] = ()
    # Exported attributes of a row; without any the list has no export.
    exported: ClassVar[Sequence[str]] = ()
    missing: ClassVar[StrOrPromise] = ""  # the message of a 404
    # Returns the rows that match a text, if it is not what Django finds in `search_fields`.
    search: Callable[[models.QuerySet[Any], str], models.QuerySet[Any]] | None = None

    # --- the list ---------------------------------------------------------------------------------

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the templates of the list need beside its rows."""
        return {}

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Add to the rows of a page what its columns show, with a few queries for all of them."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        return super().changelist_view(
            request, {**self.list_context(request), **(extra_context or {})}
        )

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return self.changelist

    def get_list_display(self, request: HttpRequest) -> tuple[Any, ...]:
        return preferences.shown_columns(request, self)

    def offered_columns(self) -> tuple[Any, ...]:
        """Return the columns that users may choose."""
        return (*self.list_display, *self.more_columns)

    def offered_filters(self) -> tuple[Any, ...]:
        return tuple(self.list_filter)

    def get_list_filter(self, request: HttpRequest) -> Any:
        return self.offered_filters()

    def exported_names(self) -> Iterable[str]:
        """Return the exported attributes of a row; without any the list has no export."""
        return self.exported

    def get_sortable_by(self, request: HttpRequest) -> list[Any]:
        columns = self.get_list_display(request)
        orders = {
            column: column.admin_order_field if isinstance(column, Column) else column
            for column in columns
            if isinstance(column, Column) or column in self.sortable_by
        }
        slow = {order for order in orders.values() if order} - {*self.indexed_orders}
        if slow and estimated_rows(self.model) > MOST_SORTED:
            return [column for column, order in orders.items() if order not in slow]
        return list(orders)

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Row], search_term: str
    ) -> tuple[models.QuerySet[Row], bool]:
        text = search_term.strip()
        if self.search is None or not text:
            return super().get_search_results(request, queryset, search_term)
        return self.search(queryset, text), False

    def export_view(self, request: HttpRequest, form: str = "csv") -> HttpResponseBase:
        """Export the rows of the list, with its filters, search and order."""
        if not (self.exported and self.has_view_permission(request)):
            raise PermissionDenied
        try:
            queryset = self.get_changelist_instance(request).queryset
        except IncorrectLookupParameters as error:
            raise BadRequest(gettext("There is no such filter.")) from error
        names = [*self.exported_names()]
        head = [name.replace(".", "_") for name in names]
        read = export.attribute_reader(*names)
        rows = queryset[: export.MOST]
        name = str(self.opts.verbose_name_plural)
        if queryset[export.MOST : export.MOST + 1].exists():
            name = f"{name}-first-{export.MOST}"
        return export.download(
            form, name, head, (read(row) for row in rows.iterator(chunk_size=2000))
        )

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Remove the actions that the user may not take, and the bulk deletion, which bypasses the services."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return {
            name: entry
            for name, entry in actions.items()
            if entry and request.user.has_perms(getattr(entry[0], "permissions", ()))
        }

    # --- its pages --------------------------------------------------------------------------------

    def get_urls(self) -> list[URLPattern]:
        prefix = f"{self.opts.app_label}_{self.opts.model_name}"
        export_view = self.admin_site.admin_view(self.export_view)
        urls = [
            path("export/", export_view, name=f"{prefix}_export"),
            path("export/<str:form>/", export_view, name=f"{prefix}_export"),
        ]
        for place, served in (("", self.list_pages), ("<int:object_id>/", self.row_pages)):
            urls += [
                path(
                    f"{place}{page.path}/",
                    self.admin_site.admin_view(partial(self._serve, page)),
                    name=f"{prefix}_{page.name}",
                )
                for page in served
                if page.name not in _DJANGO_PAGES
            ]
        return urls + super().get_urls()

    def _serve(
        self, page: Page, request: HttpRequest, object_id: object = None, **more: Any
    ) -> Any:
        """Check the permissions, then read the row, then call the view."""
        if object_id is None:
            pages.require(request, *page.permissions)
            return page.view(request, **more)
        view_row = f"{self.opts.app_label}.view_{self.opts.model_name}"
        pages.require(request, *(page.permissions or (view_row,)))
        return page.view(request, self.row_or_404(request, object_id), **more)

    def row_or_404(self, request: HttpRequest, object_id: object) -> Row:
        """Return a row of the list. A hidden row, a missing row and an invalid id are the same 404."""
        rows = self.get_queryset(request)
        if isinstance(self.list_select_related, tuple):
            rows = rows.select_related(*self.list_select_related)
        row = rows.filter(pk=parse_id(str(object_id))).first()
        if row is None:
            raise Http404(
                self.missing
                or gettext("This %(object)s does not exist.") % {"object": self.opts.verbose_name}
            )
        return row

    def _page(self, served: Iterable[Page], name: str) -> Page | None:
        return next((page for page in served if page.name == name), None)

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        page = self._page(self.list_pages, "add")
        if page is None:
            return super().add_view(request, *arguments, **options)
        return self._serve(page, request)  # type: ignore[no-any-return]

    def change_view(
        self, request: HttpRequest, object_id: str, *arguments: Any, **options: Any
    ) -> HttpResponse:
        page = self._page(self.row_pages, "change")
        if page is None:
            return super().change_view(request, object_id, *arguments, **options)
        return self._serve(page, request, object_id)  # type: ignore[no-any-return]

    def delete_view(
        self, request: HttpRequest, object_id: str, *arguments: Any, **options: Any
    ) -> HttpResponse:
        page = self._page(self.row_pages, "delete")
        if page is None:
            return super().delete_view(request, object_id, *arguments, **options)
        return self._serve(page, request, object_id)  # type: ignore[no-any-return]

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Check the permission first: Django looks up the row first, which reveals which rows exist."""
        page = self._page(self.row_pages, "history")
        if page is not None:
            return self._serve(page, request, object_id)  # type: ignore[no-any-return]
        if not self.has_view_permission(request):
            raise PermissionDenied
        return super().history_view(request, object_id, extra_context)

    def has_add_permission(self, request: HttpRequest) -> bool:
        page = self._page(self.list_pages, "add")
        return page is not None and request.user.has_perms(page.permissions)

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False
