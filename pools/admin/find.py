"""Find and the command palette (unfold: COMMAND): who has an address, and the rows of every list with a text.

The palette has pages of the menu and actions, too.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from ipaddress import ip_network
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import label_for_field
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _
from django_stubs_ext import StrOrPromise
from unfold.dataclasses import SearchResult

from pools.admin import time_bars
from pools.admin.pools import blocks as block_list
from pools.core import addresses, errors, periods
from pools.models import LIVE, Block, Event, Pool, PoolCIDR
from pools.platform import search
from pools.platform.admin import display, lists, menu, pages, preferences
from pools.platform.history import search as history_search
from pools.register import dns
from pools.register.history import addresses as history_addresses, holders
from pools.register.plan import free_space

MOST = 50
SHORTEST = 2  # characters of a text that is searched for


@dataclass(frozen=True)
class Section:
    """A section of the results: a template and its values, `section.context` in the template."""

    template: str
    context: Mapping[str, Any]


@dataclass(frozen=True)
class AdminTable:
    """A table for templates/cadastre/tables.html; `more` is the URL of the whole list."""

    title: str
    head: Sequence[str]
    rows: Sequence[Sequence[SafeString | str]]
    more: str = ""


Table = Callable[[list[Any], str], Iterable[Section]]  # of rows and the URL of the whole list
TABLES: dict[type, Table] = {}  # for other tables than a name and a text; filled by pools.extension
PERMISSIONS: list[str] = []  # any of them allows to search; filled by pools.extension


@dataclass(frozen=True)
class AddressMatch:
    """A CIDR that contains the address, its block or reserved range, and nearby free blocks."""

    cidr: PoolCIDR
    block: Block | None
    reserved: Any
    free: list[addresses.Network]

    @property
    def state(self) -> str:
        if self.block is not None:
            return self.block.state
        return "reserved" if self.reserved else "free"


def may_search(request: HttpRequest) -> bool:
    """Return True if the user may use the Find page."""
    return any(request.user.has_perm(name) for name in PERMISSIONS)


def history_url(request: HttpRequest, **query: str) -> str:
    """Return the URL of a search of the history; "" for users who may not search it."""
    permitted = history_search.is_permitted(request.user)
    return reverse("admin:history", query=query) if permitted else ""


def view(request: HttpRequest) -> HttpResponse:
    """Show what is found; with a time, `at`, the history answers."""
    if not may_search(request):
        raise PermissionDenied
    searched = search.parse(request.GET.get("q", ""))
    at = request.GET.get("at", "").strip()
    if at and searched.text and (url := history_url(request, q=searched.text, at=at)):
        return HttpResponseRedirect(url)
    context, sections = _search(request, searched)
    kind, _, name = searched.text.partition(" ")
    if (
        kind.isalpha() and name and not context and not sections
    ):  # pages print `VM shop/web`: search without the kind
        context, sections = _search(request, search.parse(name))
    title = gettext("Find %(text)s") % {"text": searched.text} if searched.text else gettext("Find")
    return pages.page(
        request,
        "find.html",
        title=title,
        searched=searched,
        nothing=bool(searched.text) and not context and not sections,
        is_too_short=len(searched.text) < SHORTEST,
        sections=sections,
        history=history_url(request, q=searched.text),
        bar=time_bars.of_tenures(request, context.get("tenures", ())),
        **context,
    )


def matching_rows(request: HttpRequest, text: str, most: int) -> Iterator[tuple[Any, list[Any]]]:
    """Yield the lists that the user may see, each with its first rows that a text is found in, the best first."""
    for model in sorted(search.COLUMNS, key=lambda model: model is Event):  # events last
        model_admin: Any = admin.site._registry.get(model)
        if model_admin is None or not model_admin.has_view_permission(request):
            continue
        rows = model_admin.get_queryset(request)
        matches, _distinct = model_admin.get_search_results(request, rows, text)
        related = model_admin.list_select_related
        matches = matches.select_related(*related) if isinstance(related, tuple) else matches
        if first := search.best_first(matches, text, most):
            yield model_admin, first


def _search(
    request: HttpRequest, searched: search.SearchText
) -> tuple[dict[str, Any], list[Section]]:
    """Return the facts about an address or a holder as template context, and the sections of the lists."""
    if len(searched.text) < SHORTEST:
        return {}, []
    context = _search_blocks(searched) if request.user.has_perm("pools.view_block") else {}
    sections = [
        section
        for model_admin, rows in matching_rows(request, searched.text, MOST)
        for section in _sections(request, model_admin, rows, searched.text)
    ]
    return context if any(context.values()) else {}, sections


def _sections(
    request: HttpRequest, model_admin: Any, rows: list[Any], text: str
) -> Iterable[Section]:
    meta = model_admin.opts
    url = reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist", query={"q": text})
    more = url if len(rows) >= MOST else ""
    if meta.model in TABLES:
        return TABLES[meta.model](rows, more)
    title = capfirst(str(getattr(model_admin, "row_names", meta.verbose_name_plural)))
    if names := getattr(model_admin, "found_columns", ()):
        return [tables(list_table(request, meta.model, rows, names, title=title, more=more))]
    return [row_table(title, rows, more)]


def row_table(title: str, rows: list[Any], more: str = "") -> Section:
    """Return a section with the names of rows as links, and what is searched of them."""
    cells = [(display.row_link(row), search.describe(row)) for row in rows]
    return tables(AdminTable(title, (gettext("Name"), gettext("Found in")), cells, more))


def tables(*shown: AdminTable) -> Section:
    """Return a section with tables."""
    return Section("cadastre/tables.html", {"tables": shown})


def list_table(
    request: HttpRequest,
    model: type[Any],
    rows: list[Any],
    names: Iterable[str],
    *,
    title: str,
    more: str = "",
) -> AdminTable:
    """Return a table of rows with some columns of the list of their model."""
    model_admin: Any = admin.site.get_model_admin(model)
    model_admin.prepare_rows(request, rows)
    offered = {preferences.column_name(name): name for name in model_admin.offered_columns()}
    columns = [offered[name] for name in names]
    return AdminTable(
        title,
        [capfirst(str(label_for_field(column, model, model_admin))) for column in columns],
        [
            [lists.cell(model_admin, row, column, display.DASH) for column in columns]
            for row in rows
        ],
        more,
    )


def _search_blocks(searched: search.SearchText) -> dict[str, Any]:
    if searched.address is not None:
        return _search_address(searched.address)
    if searched.network is not None and not searched.is_part:
        return {}
    tenures = holders.find_tenures(holder=searched.text, limit=MOST).tenures
    return {
        "named_blocks": list(dns.find_blocks(searched.text, MOST).select_related("pool__cluster")),
        "tenures": tenures,
    }


def _search_address(address: addresses.Address) -> dict[str, Any]:
    _, tenures = history_addresses.find_holders(address)
    cidrs = PoolCIDR.objects.filter(cidr__net_contains_or_equals=str(address))
    cidrs = cidrs.select_related("pool__cluster").prefetch_related("reserved_ranges")
    matches = [_address_match(cidr, address) for cidr in cidrs[:MOST]]
    return {
        "address": address if matches or tenures else None,
        "matches": matches,
        "tenures": tenures,
    }


def _address_match(cidr: PoolCIDR, address: addresses.Address) -> AddressMatch:
    rows = Block.objects.filter(space=cidr.space_id, state__in=LIVE)
    block = (
        block_list.overlapping(rows, ip_network(address)).select_related("pool__cluster").first()
    )
    reserved = [
        reserved_range
        for reserved_range in cidr.reserved_ranges.all()
        if int(reserved_range.first) <= int(address) <= int(reserved_range.last)
    ]
    return AddressMatch(cidr, block, reserved[:1], free_space.nearest_free_blocks(cidr, address, 6))


# --- the palette ----------------------------------------------------------------------------------

_OBJECTS = 5  # of each list
_LONGEST = 120  # characters of a description
_ICON = "data_object"
_POOL_ICON = "stacks"
_FIND_ICON = "search"
_HISTORY_ICON = "history"
_ACTION_ICON = "upload_file"


def palette(request: HttpRequest, text: str) -> list[SearchResult]:
    """Return what a text leads to: the pages whose titles contain it, actions, objects, and all results on Find."""
    text = search.parse(text).text
    for action in ACTIONS:
        if match := action.words.fullmatch(text):  # the action is written out
            return [*action.find(request, match[1])]
    results = [*_pages(request, text)]
    if len(text) >= SHORTEST and may_search(request):
        for action in ACTIONS:
            if action.fits(text):
                results += action.find(request, text)
        results += _objects(request, text)
        title = gettext("Find %(text)s") % {"text": text}
        url = reverse("admin:find", query={"q": text})
        results.append(SearchResult(title, gettext("all results"), url, _FIND_ICON))
    return results


@dataclass(frozen=True)
class Action:
    """An action with its words, such as `allocate from X`, the links that it has for X, and whether X alone suggests it."""

    words: re.Pattern[str]
    find: Callable[[HttpRequest, str], Iterator[SearchResult]]
    fits: Callable[[str], bool]


def _action(
    words: str,
    links: Callable[[HttpRequest, str], Iterator[SearchResult]],
    fits: Callable[[str], bool] = bool,
) -> Action:
    return Action(re.compile(rf"(?:{words})\s+(.+)", re.IGNORECASE), links, fits)


def _is_address(text: str) -> bool:
    """Whether a text is a whole address, CIDR or MAC."""
    searched = search.parse(text)
    return len(searched.spellings) == 1 or (searched.network is not None and not searched.is_part)


def _allocate(request: HttpRequest, text: str) -> Iterator[SearchResult]:
    if not request.user.has_perms(("pools.view_pool", "pools.allocate")):
        return
    pools = search.matching(Pool.objects.select_related("cluster"), text)
    for pool in search.best_first(pools, text, _OBJECTS):
        title = gettext("Allocate from %(pool)s") % {"pool": pool.name}
        url = reverse("admin:pools_pool_allocate", args=[pool.pk])
        yield SearchResult(title, pool.cluster.name, url, _POOL_ICON)


def _history(request: HttpRequest, text: str) -> Iterator[SearchResult]:
    name, at, time = text.partition(" at ")
    if not at:  # `10.1.2.3 last week`
        first, _blank, words = text.partition(" ")
        with contextlib.suppress(errors.InvalidInput):
            periods.parse_period(words, timezone.localtime())
            name, time = first, words
    query = {"q": name, **({"at": time} if time else {})}
    if url := history_url(request, **query):
        title = gettext("Who held %(text)s?") % {"text": text}
        yield SearchResult(title, gettext("history"), url, _HISTORY_ICON)


def _migrate(request: HttpRequest, text: str) -> Iterator[SearchResult]:
    network = search.parse(text).network
    if network is None or not request.user.has_perms(("pools.view_pool", "pools.change_pool")):
        return
    for cidr in PoolCIDR.objects.filter(cidr=str(network)).select_related("pool__cluster"):
        url = reverse("admin:pools_pool_migrations", args=[cidr.pool_id], query={"cidr": cidr.cidr})
        title = gettext("Migrate %(cidr)s") % {"cidr": cidr.cidr}
        yield SearchResult(title, str(cidr.pool), url, _POOL_ICON)


ACTIONS = (
    _action("allocate(?: from)?", _allocate),
    _action("who (?:held|had|has)|history(?: of)?", _history, _is_address),
    _action("migrate", _migrate),
)

# Pages that the menu does not name: (title, words, URL, query, permissions).
_MORE_PAGES: tuple[tuple[StrOrPromise, str, dict[str, str], str], ...] = (
    (_("Import VMs"), "admin:pools_import_add", {"kind": "vm"}, "claims.add_vmimport"),
    (
        _("Import a register"),
        "admin:pools_import_add",
        {"kind": "register"},
        "pools.add_registerimport",
    ),
    (_("Add pool"), "admin:pools_pool_add", {}, "pools.add_pool"),
    (_("Add cluster"), "admin:pools_cluster_add", {}, "pools.add_cluster"),
    (_("Add MAC entry"), "admin:claims_entry_add", {}, "claims.add_entry"),
)


def _pages(request: HttpRequest, text: str) -> Iterator[SearchResult]:
    """Yield the pages of the menu, and some forms, that the user may open and whose titles contain the text."""
    wanted = text.lower()
    for item, page in menu.permitted_pages(request):
        if wanted in str(page["title"]).lower():
            yield SearchResult(str(page["title"]), str(item["title"]), page["link"], item["icon"])
    for title, name, query, permission in _MORE_PAGES:
        if wanted in str(title).lower() and request.user.has_perm(permission):
            yield SearchResult(
                str(title), gettext("action"), reverse(name, query=query), _ACTION_ICON
            )


def _objects(request: HttpRequest, text: str) -> Iterator[SearchResult]:
    icons = {page["link"]: item["icon"] for item, page in menu.permitted_pages(request)}
    for model_admin, rows in matching_rows(request, text, _OBJECTS):
        meta = model_admin.opts
        icon = icons.get(reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"), _ICON)
        for row in rows:
            about = f"{capfirst(str(meta.verbose_name))} · {search.describe(row)}".rstrip(" ·")
            yield SearchResult(str(row), about[:_LONGEST], display.url_of(row), icon)
