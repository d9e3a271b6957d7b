"""What users choose for a list: its columns and their order, and filters under a name.

A choice belongs to one user and one list. Names of columns and filters that the list no longer has are
ignored. The query of a saved filter orders by the names of columns, as their numbers depend on the choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from django import forms
from django.apps import apps
from django.contrib import admin, messages
from django.contrib.admin.exceptions import NotRegistered
from django.contrib.admin.utils import label_for_field
from django.contrib.admin.views.main import ORDER_VAR, SEARCH_VAR, ChangeList
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

from pools.core import holders
from pools.models import ListColumns, SavedFilter
from pools.platform import database
from pools.platform.admin import forms as fields, pages, row_forms
from pools.platform.admin.columns import Column

if TYPE_CHECKING:
    from pools.platform.admin.lists import ListAdmin

MOST = 200  # saved filters in the menu of a list
LONGEST_NAME = 80
CHANGE = "pools.change_savedfilter"  # of other users, if they are shared


def list_name(model_admin: ListAdmin[Any]) -> str:
    return str(model_admin.opts.label_lower)


def _user_id(request: HttpRequest) -> int:
    return request.user.pk or 0  # 0: nobody


def column_name(column: Any) -> str:
    return column if isinstance(column, str) else str(column.__name__)


# --- columns --------------------------------------------------------------------------------------


def shown_columns(request: HttpRequest, model_admin: ListAdmin[Any]) -> tuple[Any, ...]:
    """Return the columns that the user has chosen, by default those of `list_display`; one query per request."""
    name = list_name(model_admin)
    shown: dict[str, tuple[Any, ...]] = request.__dict__.setdefault("shown_columns", {})
    if name not in shown:
        chosen = ListColumns.objects.filter(user=_user_id(request), list=name).values_list(
            "columns", flat=True
        )
        offered = _offered_columns(model_admin)
        columns = [offered[name] for name in chosen.first() or () if name in offered]
        shown[name] = tuple(columns or model_admin.list_display)
    return shown[name]


def _offered_columns(model_admin: ListAdmin[Any]) -> dict[str, str | Column]:
    return {column_name(column): column for column in model_admin.offered_columns()}


def columns_view(request: HttpRequest, label: str) -> HttpResponse:
    """By POST, keep the chosen columns in their order, or with `_reset` the default."""
    model_admin = list_or_404(request, label)
    if request.method == "POST":
        own = ListColumns.objects.filter(user=_user_id(request), list=label)
        chosen = dict.fromkeys(request.POST.getlist("column"))
        offered = _offered_columns(model_admin)
        names = [name for name in chosen if name in offered]
        if "_reset" in request.POST:
            own.delete()
        elif names:
            own.update_or_create(user_id=_user_id(request), list=label, defaults={"columns": names})
        else:
            messages.error(request, gettext("Choose at least one column."))
    query = _storable(model_admin, QueryDict(request.POST.get("query", "")))
    query.pop(ORDER_VAR, None)
    return HttpResponseRedirect(_list_url(label, query))


# --- saved filters --------------------------------------------------------------------------------


class SavedFilterForm(row_forms.RowForm):
    name = fields.ParsedField(
        lambda text: holders.parse_reason(text, max_length=LONGEST_NAME),
        label=_("Name"),
        widget=fields.text(),
    )
    shared = forms.BooleanField(
        label=_("Shared with everybody who sees this list"), required=False, widget=fields.tick()
    )


def filters_view(request: HttpRequest, label: str) -> HttpResponse:
    """Save the filters, search and order in `query` under a name."""
    model_admin = list_or_404(request, label)
    parameters = request.POST if request.method == "POST" else request.GET
    stored = _storable(model_admin, QueryDict(parameters.get("query", "")))
    query = urlencode(stored, doseq=True)
    row = SavedFilter(owner_id=_user_id(request), list=label, query=query)
    return _form_page(request, row, gettext("Save filter"))


def filter_view(request: HttpRequest, label: str, filter_id: int) -> HttpResponse:
    """Rename, share or delete a saved filter: its owner, or an administrator if it is shared."""
    list_or_404(request, label)
    row = _visible(request, label).filter(pk=filter_id).first()
    if row is None:
        raise Http404(gettext("This saved filter does not exist."))
    if not _may_change(request, row):
        raise PermissionDenied
    if request.method == "POST" and "_delete" in request.POST:
        if not pages.is_confirmed(request):
            return pages.confirmation(
                request,
                apps.get_model(row.list),
                title=gettext("Delete the filter %(name)s?") % {"name": row.name},
                effects=[gettext("Everybody with whom it is shared loses it, too.")]
                if row.shared
                else [gettext("The list and its rows stay as they are.")],
                button=gettext("Delete"),
                back=request.get_full_path(),
            )
        row.delete()
        return pages.done(
            request,
            gettext("Filter %(name)s was deleted.") % {"name": row.name},
            _list_url(label, {}),
        )
    return _form_page(request, row, gettext("Edit filter %(name)s") % {"name": row.name})


def _form_page(request: HttpRequest, row: SavedFilter, title: str) -> HttpResponse:
    form = SavedFilterForm(request.POST or None)
    form.show_row(row, lambda row: {"name": row.name, "shared": row.shared})
    if request.method == "POST" and form.is_valid():
        field_of = lambda problem: None if problem.field == "query" else "name"  # noqa: E731
        with pages.errors_at_field(form, field_of), transaction.atomic():
            for locked in SavedFilter.objects.select_for_update().filter(pk=row.pk):
                form.check_version(locked)
            row.name, row.shared = form.cleaned_data["name"], form.cleaned_data["shared"]
            database.save(row)
            messages.success(request, gettext("Filter %(name)s was saved.") % {"name": row.name})
            model_admin = list_or_404(request, row.list)
            query = _applied(model_admin, row, _column_numbers(request, model_admin))
            return HttpResponseRedirect(_list_url(row.list, query))
    return pages.page(
        request,
        "saved_filter.html",
        apps.get_model(row.list),
        title=title,
        form=form,
        row=row,
        back=_list_url(row.list, {}),
    )


def _visible(request: HttpRequest, label: str) -> QuerySet[SavedFilter]:
    mine_or_shared = Q(owner=_user_id(request)) | Q(shared=True)
    return SavedFilter.objects.filter(mine_or_shared, list=label)


def _may_change(request: HttpRequest, row: SavedFilter) -> bool:
    return row.owner_id == _user_id(request) or request.user.has_perm(CHANGE)


def _storable(model_admin: ListAdmin[Any], query: QueryDict) -> dict[str, list[str]]:
    """Return the search, the order and the filters of a query that the list has, each with its values."""
    names = {SEARCH_VAR, ORDER_VAR}
    names |= {getattr(item, "parameter_name", "") for item in model_admin.offered_filters()}
    values = {name: list(filter(None, query.getlist(name))) for name in sorted(names & set(query))}
    return {name: texts for name, texts in values.items() if texts}


def _column_numbers(request: HttpRequest, model_admin: ListAdmin[Any]) -> dict[str, str]:
    """Return the number of each shown column in Django's parameter of the order, by its name."""
    first = 1 if model_admin.get_actions(request) else 0
    shown = shown_columns(request, model_admin)
    return {column_name(column): str(number) for number, column in enumerate(shown, start=first)}


def _translated_order(order: str, words: dict[str, str]) -> str:
    """Return an order such as `2.-1` in other words; what has none is left out."""
    parts = [("-" * part.startswith("-"), part.removeprefix("-")) for part in order.split(".")]
    return ".".join(sign + words[word] for sign, word in parts if word in words)


def _applied(
    model_admin: ListAdmin[Any], row: SavedFilter, numbers: dict[str, str]
) -> dict[str, list[str]]:
    """Return the query of the list; its order leaves out columns that are not shown."""
    query = _storable(model_admin, QueryDict(row.query))
    order = _translated_order("".join(query.pop(ORDER_VAR, ())[-1:]), numbers)
    return {**query, ORDER_VAR: [order]} if order else query


# --- the list -------------------------------------------------------------------------------------


def tools(request: HttpRequest, changelist: ChangeList) -> dict[str, Any]:
    """Return what the menus of a list show: all columns, the shown ones first, and the saved filters."""
    model_admin: Any = changelist.model_admin
    label = list_name(model_admin)
    shown = [column_name(column) for column in shown_columns(request, model_admin)]
    offered = _offered_columns(model_admin)
    query = _storable(model_admin, request.GET)
    numbers = _column_numbers(request, model_admin)
    names = {number: name for name, number in numbers.items()}
    if ORDER_VAR in query:
        query[ORDER_VAR] = [_translated_order(query[ORDER_VAR][-1], names)]
    text = urlencode(query, doseq=True)
    return {
        "list": label,
        "query": text,
        "columns": [
            (
                name,
                capfirst(str(label_for_field(offered[name], model_admin.model, model_admin))),
                name in shown,
            )
            for name in dict.fromkeys([*shown, *offered])
        ],
        "saved": [
            {
                "row": row,
                "url": f"?{urlencode(_applied(model_admin, row, numbers), doseq=True)}",
                "is_current": row.query == text,
                "may_change": _may_change(request, row),
            }
            for row in _visible(request, label).order_by("name", "pk")[:MOST]
        ],
    }


def list_or_404(request: HttpRequest, label: str) -> ListAdmin[Any]:
    """Return the list of a model, for users who may see it."""
    try:
        model_admin: Any = admin.site.get_model_admin(apps.get_model(label))
    except (LookupError, ValueError, NotRegistered):
        model_admin = None
    if not hasattr(model_admin, "more_columns") or label != list_name(model_admin):
        raise Http404(gettext("There is no such list."))
    if not model_admin.has_view_permission(request):
        raise PermissionDenied
    return model_admin  # type: ignore[no-any-return]


def _list_url(label: str, query: dict[str, list[str]]) -> str:
    return reverse(f"admin:{label.replace('.', '_')}_changelist", query=query or None)
