"""What the lists have in common: paging without counting a large table, filters, who may what."""

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
from unfold import admin as unfold
from unfold.contrib.filters.admin import DropdownFilter

from pools.platform.admin import export

if TYPE_CHECKING:
    from django.contrib.admin import ModelAdmin as Base
else:
    Base = unfold.ModelAdmin

Row = TypeVar("Row", bound=models.Model)

FILTERS = "_changelist_filters"  # Django's own name for it
REACH = 10_000  # rows that can be paged through; who looks for more searches


def action_page(request: HttpRequest, name: str, **query: Any) -> HttpResponse:
    """The page of an action, which comes back to the list with its filters."""
    filters = {FILTERS: request.GET.urlencode()}
    return HttpResponseRedirect(reverse(name, query={**query, **filters}))


def back(request: HttpRequest, name: str) -> str:
    """The list that an action was started from, with the filters that it had."""
    return reverse(name, query=QueryDict(request.GET.get(FILTERS, "")))


class BoundedPaginator(paginator.Paginator[Any]):
    """Counts up to 10,000 rows; `more` says that there are more, which only a search reaches.

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
    """Also knows whether there are more rows than can be paged through."""

    most_exported = export.MOST

    def chosen(self) -> list[str]:
        """The filters that hold, in words."""
        told = (one.told() for one in self.filter_specs if isinstance(one, Choice))
        return [words for words in told if words]

    @property
    def beyond(self) -> bool:
        return getattr(self.paginator, "more", False)


def estimated_rows(model: type[models.Model]) -> int:
    """Rows of a table as the last ANALYZE or VACUUM saw them."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT greatest(reltuples, 0)::bigint FROM pg_class WHERE oid = %s::regclass",
            [model._meta.db_table],
        )
        return int(cursor.fetchone()[0])


class Listed(Base[Row]):
    """A list whose rows are not made, changed or deleted by hand."""

    list_per_page = 100
    list_max_show_all = 200
    show_full_result_count = False
    list_filter_submit = True
    list_fullwidth = True
    show_facets = False  # type: ignore[assignment]  # facets count every choice
    actions: Sequence[Any] = ()
    exported: Sequence[str] = ()  # attributes of a row; none: the list has no export

    def get_changelist(self, request: HttpRequest, **_options: Any) -> type[ChangeList]:
        return BoundedList

    def get_urls(self) -> list[URLPattern]:
        own = f"{self.opts.app_label}_{self.opts.model_name}_export"
        view = self.admin_site.admin_view(self.export_view)
        paths = [path("export/", view, name=own), path("export/<str:form>/", view, name=own)]
        return paths + super().get_urls()

    def export_view(self, request: HttpRequest, form: str = "csv") -> HttpResponseBase:
        """The rows of the list, with its filters, search and order."""
        if not (self.exported and self.has_view_permission(request)):
            raise PermissionDenied
        try:
            found = self.get_changelist_instance(request).queryset
        except IncorrectLookupParameters as error:
            raise BadRequest("There is no such filter.") from error
        head = [name.replace(".", "_") for name in self.exported]
        read = export.plain(*self.exported)
        rows = found[: export.MOST]
        name = str(self.opts.verbose_name_plural)
        if found[export.MOST : export.MOST + 1].exists():
            name = f"{name}-first-{export.MOST}"
        return export.download(
            form, name, head, (read(one) for one in rows.iterator(chunk_size=2000))
        )

    def history_view(
        self, request: HttpRequest, object_id: str, extra_context: Any = None
    ) -> HttpResponse:
        """Django looks for the row first, and so tells which ones there are."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        return super().history_view(request, object_id, extra_context)

    def get_actions(self, request: HttpRequest) -> dict[str, Any]:
        """Never the bulk deletion, which would pass the services by."""
        found = super().get_actions(request)
        found.pop("delete_selected", None)
        return found

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Row | None = None) -> bool:
        return False


class Choice(DropdownFilter):
    """A filter whose choices and condition are functions of the subclass."""

    def options(self, request: HttpRequest) -> list[tuple[str, str]]:
        raise NotImplementedError

    def lookups(self, request: HttpRequest, _admin: Any) -> list[tuple[str, str]]:
        return self.options(request)

    def told(self) -> str:
        """`state: draining`; empty when nothing is chosen."""
        chosen = dict(self.lookup_choices).get(self.value() or "")
        return f"{self.title}: {chosen}" if chosen else ""

    def number(self) -> int:
        """The chosen id; 0, which no row has, for anything else."""
        return number(self.value() or "")


def number(text: str) -> int:
    """An id as it stands in an address; 0, which no row has, for anything else."""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 18 else 0
