"""The command palette (unfold: COMMAND): pages of the menu, actions, and objects of every list."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _
from django_stubs_ext import StrOrPromise
from unfold.dataclasses import SearchResult

from pools.admin import find
from pools.models import Pool, PoolCIDR
from pools.platform import search
from pools.platform.admin import display, menu

_OBJECTS = 5  # of each list
_LONGEST = 120  # characters of a description
_ICON = "data_object"
_POOL_ICON = "stacks"
_FIND_ICON = "search"
_HISTORY_ICON = "history"
_ACTION_ICON = "upload_file"


def results(request: HttpRequest, text: str) -> list[SearchResult]:
    """Return what a text leads to: the pages whose titles contain it, actions, objects, and all results on Find."""
    text = search.parse(text).text
    for action in ACTIONS:
        if match := action.words.fullmatch(text):  # the action is written out
            return [*action.find(request, match[1])]
    found = [*_pages(request, text)]
    if len(text) >= find.SHORTEST and find.may_search(request):
        for action in ACTIONS:
            if action.fits(text):
                found += action.find(request, text)
        found += _objects(request, text)
        title = gettext("Find %(text)s") % {"text": text}
        url = reverse("admin:find", query={"q": text})
        found.append(SearchResult(title, gettext("all results"), url, _FIND_ICON))
    return found


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
    name, _at, time = text.partition(" at ")
    query = {"q": name, **({"at": time} if time else {})}
    if url := find.history_url(request, **query):
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
    for model_admin, rows in find.matching_rows(request, text, _OBJECTS):
        meta = model_admin.opts
        icon = icons.get(reverse(f"admin:{meta.app_label}_{meta.model_name}_changelist"), _ICON)
        for row in rows:
            about = f"{capfirst(str(meta.verbose_name))} · {search.describe(row)}".rstrip(" ·")
            yield SearchResult(str(row), about[:_LONGEST], display.url_of(row), icon)
