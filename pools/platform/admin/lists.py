"""Base classes of the admin's lists: paging without counting a large table, filters, permissions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core import paginator
from django.core.exceptions import BadRequest, PermissionDenied
from django.db import connection, models
from django.http import (
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    QueryDict,
)
from django.urls import URLPattern, path, reverse
from django.utils.functional import cached_property
from django.utils.translation import gettext
from unfold import admin as unfold
from unfold.contrib.filters.admin import DropdownFilter

from pools.platform.admin import export

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin as Base
else:
    Base = unfold.ModelAdmin

Row = TypeVar("Row", bound=models.Model)

FILTERS = "_changelist_filters"  # the parameter in which Django keeps the filters of a list
REACH = 10_000  # rows that can be paged through; a search reaches the others


def action_page(request: HttpRequest, name: str, **query: Any) -> HttpResponse:
    """Redirect to the page of an action, which returns to the list with its filters."""
    filters = {FILTERS: request.GET.urlencode()}
    return HttpResponseRedirect(reverse(name, query={**query, **filters}))


def list_url(request: HttpRequest, name: str) -> str:
    """Return the URL of the list that an action was started from, with its filters."""
    return reverse(name, query=QueryDict(request.GET.get(FILTERS, "")))


class BoundedPaginator(paginator.Paginator[Any]):
    """Counts up to REACH rows; `more` is True if there are more, which only a search reaches.

    An exact count over a million rows costs more than the page itself, and so does a page far
    from the start.
    """

    @cached_property
    def count(self) -> int:
        return min(self._counted, REACH)

    @cached_property
    def _counted(self) -> int:
        rows: Any = self.object_list
        return int(rows.order_by().values("pk")[: REACH + 1].count())

    @property
    def more(self) -> bool:
        return self._counted > REACH


class BoundedList(ChangeList):
    """A list that knows whether it has more rows than can be paged through."""

    most_exported = export.MOST

    def active_filters(self) -> list[str]:
        """Return the active filters as text."""
        labels = (
            choice.label() for choice in self.filter_specs if isinstance(choice, ChoiceFilter)
        )
        return [words for words in labels if words]

    @property
    def beyond(self) -> bool:
        return getattr(self.paginator, "more", False)


def estimated_rows(model: type[models.Model]) -> int:
    """Return the number of rows of a table according to the last ANALYZE or VACUUM."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = %s::regclass",  # no text: SQL
            [model._meta.db_table],
        )
        return int(cursor.fetchone()[0])


class ReadOnlyAdmin(Base[Row]):
    """A list whose rows cannot be added, changed or deleted in the admin."""

    list_per_page = 100
    list_max_show_all = 200
    show_full_result_count = False
    list_filter_submit = True
    list_fullwidth = True
    show_facets = False  # type: ignore[assignment]  # facets count every choice
    actions: Sequence[Any] = ()
    exported: Sequence[str] = ()  # exported attributes of a row; without any the list has no export

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return BoundedList

    def get_urls(self) -> list[URLPattern]:
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        view = self.admin_site.admin_view(self.export_view)
        paths = [path("export/", view, name=name), path("export/<str:form>/", view, name=name)]
        return paths + super().get_urls()

    def export_view(self, request: HttpRequest, form: str = "csv") -> HttpResponseBase:
        """Export the rows of the list, with its filters, search and order."""
        if not (self.exported and self.has_view_permission(request)):
            raise PermissionDenied
        try:
            queryset = self.get_changelist_instance(request).queryset
        except IncorrectLookupParameters as error:
            raise BadRequest(gettext("There is no such filter.")) from error
        head = [name.replace(".", "_") for name in self.exported]
        read = export.attribute_reader(*self.exported)
        rows = queryset[: export.MOST]
        name = str(self.opts.verbose_name_plural)
        if queryset[export.MOST : export.MOST + 1].exists():
            name = f"{name}-first-{export.MOST}"
        return export.download(
            form, name, head, (read(row) for row in rows.iterator(chunk_size=2000))
        )

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Check the permission first: Django looks up the row first, which reveals which rows exist."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return super().history_view(request, object_id, extra_context)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Remove the bulk deletion, which would bypass the services, and actions that need more permissions."""
        actions = super().get_actions(request)
        actions.pop("delete_selected", None)
        return {
            name: action
            for name, action in actions.items()
            if action and request.user.has_perms(getattr(action[0], "permissions", ()))
        }

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False


class ChoiceFilter(DropdownFilter):
    """A filter whose choices and condition are functions of the subclass."""

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        raise NotImplementedError

    def lookups(self, request: HttpRequest, _admin: Any) -> list[tuple[str, str]]:
        return self.options(request)

    def label(self) -> str:
        """Return `state: draining`, or "" if nothing is selected."""
        label = dict(self.lookup_choices).get(self.value() or "")
        return f"{self.title}: {label}" if label else ""

    def selected_id(self) -> int:
        """Return the selected id, or 0, which no row has, if the value is no id."""
        return parse_id(self.value() or "")


def parse_id(text: str) -> int:
    """Return the id in a query parameter, or 0, which no row has, if the text is no id."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0
