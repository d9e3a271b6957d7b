"""The base class of the admin's lists: what a list shows and which pages it has is data.

A list names its columns (`columns`), filters (`filters`), actions (`action`) and pages (`Page`).
Its paginator estimates a large table (`large_tables`).

The table is our own (`table`): unfold's has 700 characters of classes in each cell and makes the headings anew for
each row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.utils import display_for_field, display_for_value, lookup_field
from django.contrib.admin.views.main import ERROR_FLAG, ChangeList
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import models
from django.forms import Media
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    QueryDict,
)
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext, ngettext
from django_stubs_ext import StrOrPromise
from unfold import admin as unfold
from unfold.contrib.filters.forms import DropdownForm
from unfold.templatetags import unfold_list

from pools.platform import search
from pools.platform.admin import display, export, large_tables, live, pages, preferences
from pools.platform.admin.columns import Column

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin as Base
else:
    Base = unfold.ModelAdmin

Row = TypeVar("Row", bound=models.Model)

FILTERS = "_changelist_filters"  # the parameter in which Django keeps the filters of a list
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


def chosen_ids(request: HttpRequest, most: int) -> list[int]:
    """Return the ids of the rows that an action was started with, or that its page posts; at most so many."""
    texts = request.POST.getlist("id") or request.GET.getlist("id")
    return [parse_id(text) for text in texts[:most]]


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
    paginator = large_tables.EstimatedPaginator
    changelist: ClassVar[type[large_tables.BoundedList]] = large_tables.BoundedList
    actions: Sequence[Any] = ()
    # Columns that users may choose, beside those of `list_display`.
    more_columns: ClassVar[tuple[Column | str, ...]] = ()
    # Names of the columns that Find shows; without any a name and what is searched.
    found_columns: ClassVar[tuple[str, ...]] = ()
    # Names of model fields; a Column is sortable if it has an order.
    sortable_by: ClassVar[tuple[str, ...]] = ()
    live_columns: ClassVar[tuple[str, ...]] = ()  # whose values renew themselves on the page
    list_pages: Sequence[Page] = ()
    row_pages: Sequence[Page] = ()
    # Exported attributes of a row; without any the list has no export.
    exported: ClassVar[Sequence[str]] = ()
    missing: ClassVar[StrOrPromise] = ""  # the message of a 404
    empty_text: ClassVar[StrOrPromise] = ""  # of a list without rows; else that there are none

    # --- the list ---------------------------------------------------------------------------------

    @property
    def media(self) -> Media:
        """The scripts of filters and actions, without those of Django's forms, which these pages do not have."""
        media = Media(DropdownForm.Media) if self.offered_filters() else Media()
        return media + Media(js=("admin/js/actions.js",)) if self.actions else media

    def list_context(self, request: HttpRequest) -> dict[str, Any]:
        """Return what the templates of the list need beside its rows."""
        return {}

    def prepare_rows(self, request: HttpRequest, rows: list[Any]) -> None:
        """Add to the rows of a page what its columns show, with a few queries for all of them."""

    def changelist_view(
        self, request: HttpRequest, extra_context: dict[str, Any] | None = None
    ) -> HttpResponse:
        if ERROR_FLAG in request.GET:  # Django's redirect from filters that a list does not have
            messages.warning(request, gettext("There is no such filter, so all rows are shown."))
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
        return [
            column
            for column in self.get_list_display(request)
            if isinstance(column, Column) or column in self.sortable_by
        ]

    def get_search_fields(self, request: HttpRequest) -> tuple[str, ...]:
        """Return the searched columns, by which Django knows that the list has a search."""
        return search.COLUMNS[self.model].texts if self.model in search.COLUMNS else ()

    def get_search_results(
        self, request: HttpRequest, queryset: models.QuerySet[Row], search_term: str
    ) -> tuple[models.QuerySet[Row], bool]:
        return search.matching(queryset, search_term) if search_term else queryset, False

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
        if queryset.order_by()[export.MOST : export.MOST + 1].exists():  # whatever their order is
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

    def response_action(
        self, request: HttpRequest, queryset: models.QuerySet[Row], *arguments: Any, **options: Any
    ) -> HttpResponse | None:
        """Refuse an id that no row can have, by which Django would fail."""
        by_number = isinstance(self.opts.pk, models.IntegerField)
        for text in request.POST.getlist(ACTION_CHECKBOX_NAME):
            if "\0" in text or (by_number and not parse_id(text)):
                raise BadRequest(gettext("There is no such object."))
        return super().response_action(request, queryset, *arguments, **options)

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
        pages.require(request, *page.permissions)
        if not page.permissions:
            self.require_view(request)
        return page.view(request, self.row_or_404(request, object_id), **more)

    def require_view(self, request: HttpRequest) -> None:
        """Raise PermissionDenied unless the user may view rows of the list."""
        pages.require(request, f"{self.opts.app_label}.view_{self.opts.model_name}")

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

    def _serve_named(
        self, name: str, request: HttpRequest, object_id: object = None
    ) -> HttpResponse | None:
        """Answer with the page of this name; None if the list leaves it to Django."""
        served = self.list_pages if object_id is None else self.row_pages
        page = next((page for page in served if page.name == name), None)
        return self._serve(page, request, object_id) if page else None

    def add_view(self, request: HttpRequest, *arguments: Any, **options: Any) -> HttpResponse:
        page = self._serve_named("add", request)
        return page or super().add_view(request, *arguments, **options)

    def change_view(
        self, request: HttpRequest, object_id: str, *arguments: Any, **options: Any
    ) -> HttpResponse:
        page = self._serve_named("change", request, object_id)
        return page or super().change_view(request, object_id, *arguments, **options)

    def delete_view(
        self, request: HttpRequest, object_id: str, *arguments: Any, **options: Any
    ) -> HttpResponse:
        page = self._serve_named("delete", request, object_id)
        return page or super().delete_view(request, object_id, *arguments, **options)

    def render_delete_form(self, request: HttpRequest, context: dict[str, Any]) -> HttpResponse:
        return pages.django_deletion(request, context)

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Check the permission first: Django looks up the row first, which reveals which rows exist."""
        page = self._serve_named("history", request, object_id)
        if page is None and not self.has_view_permission(request):
            raise PermissionDenied
        return page or super().history_view(request, object_id, extra_context)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return any(
            page.name == "add" and request.user.has_perms(page.permissions)
            for page in self.list_pages
        )

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False


_PLACES = ("cad-first", "cad-second", "cad-third")  # the columns that a narrow row shows
_headings: Callable[[Any], Iterable[dict[str, Any]]] = unfold_list.result_headers


def table(cl: Any, request: HttpRequest) -> dict[str, Any]:
    """Return what the template of the table needs: headings and, for each row of a changelist, its cells as HTML."""
    headings = list(_headings(cl))
    places = iter(_PLACES)
    columns = [
        (column, _name(column), _cell_start(column, heading["text"], places))
        for column, heading in zip(cl.list_display, headings, strict=True)
    ]
    return {
        "cl": cl,
        "request": request,
        "result_headers": headings,
        "rows": [_cells(request, cl.model_admin, row, columns) for row in cl.result_list],
    }


def _name(column: Any) -> str:
    return column.__name__ if isinstance(column, Column) else str(column)


def _cell_start(column: Any, heading: StrOrPromise, places: Iterator[str]) -> SafeString:
    """Return the tag of a column's cells: its class, its place in a narrow row and its heading there."""
    if column == "action_checkbox":
        kind, label = "action-checkbox", gettext("Select record")
    else:
        kind, label = f"field-{_name(column)} {next(places, '')}".rstrip(), str(capfirst(heading))
    return format_html('<td class="{}" data-label="{}">', kind, label)


def _cells(
    request: HttpRequest, model_admin: Any, row: Any, columns: list[tuple[Any, str, SafeString]]
) -> SafeString:
    empty = model_admin.get_empty_value_display()
    live_columns = getattr(model_admin, "live_columns", ())  # users and groups have Django's admin
    cells = []
    for column, name, start in columns:
        text = cell(model_admin, row, column, empty)
        if name in live_columns:
            text = live.part(request, f"{row.pk}-{name}", text)
        cells.append((start, text))
    return format_html_join("", "{}{}</td>", cells)


def cell(model_admin: Any, row: Any, column: Any, empty: str) -> Any:
    """Return the text of a cell, as Django's own table shows it."""
    if column == "action_checkbox":
        return format_html(
            '<input type="checkbox" name="{}" value="{}" class="action-select" aria-label="{}">',
            ACTION_CHECKBOX_NAME,
            row.pk,
            gettext("Select record"),
        )
    field, _attribute, value = lookup_field(column, row, model_admin)
    if field is None or field.auto_created:
        return display_for_value(value, empty)
    if field.many_to_one:
        return getattr(row, field.name) or empty
    return display_for_field(value, field, empty)
