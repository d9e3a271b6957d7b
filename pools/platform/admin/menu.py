"""The menu, the tabs of its items, and the path from them to a page (`MENU` in `ipam_site/admin_site.py`)."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

from django.conf import settings
from django.db.models import Model
from django.http import HttpRequest
from django.urls import reverse
from django.utils.text import capfirst

from pools.platform.admin import display

TABS = "menu"  # unfold's name of the tabs of an item of the menu


@dataclass(frozen=True)
class PagePath:
    """The links (title, URL) to the pages above a page, and its heading.

    The heading of a list, of the page of a row and of a page of the menu is the end of the path; others are
    the page of an action, whose heading is a sentence and stands above its content.
    """

    links: Sequence[tuple[str, str]]
    heading: str
    is_sentence: bool


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of the menu with the items of which the user may open a page (unfold: SIDEBAR)."""
    here, page = _place(request.path)
    is_inside = page.get("url") != "admin:index" or request.path == page["link"]
    return [
        group
        | {
            "items": [
                item | {"active": is_inside and item is here, "link": permitted[0]["link"]}
                for item in group["items"]
                if (permitted := _permitted(item["pages"], request))
            ]
        }
        for group in _groups()
    ]


def permitted_pages(request: HttpRequest) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Yield the pages of the menu, its tabs and what is below them that the user may open, each after its item."""
    for group in _groups():
        for item in group["items"]:
            for page in _permitted([*item["pages"], *item["below"]], request):
                yield item, page


def tabs(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the pages of the item that a page is one of (unfold: TABS)."""
    item, page = _place(request.path)
    if page.get("link") != request.path or page not in item["pages"]:
        return []
    items = [
        {"title": other["title"], "link": other["link"], "active": other is page}
        for other in _permitted(item["pages"], request)
    ]
    return [{"page": TABS, "items": items}] if len(items) > 1 else []


def path_to(context: Mapping[Any, Any], request: HttpRequest) -> PagePath:
    """Return the path to the page that a template with this context shows."""
    opts, row = context.get("opts"), context.get("original")
    title = str(context.get("content_title") or context.get("title") or "")
    links = _links(request.path, request)
    if opts:
        url = reverse(f"admin:{opts.app_label}_{opts.model_name}_changelist")
        links = _links(url, request)
        if not links or links[-1][1] != url:
            links.append((capfirst(opts.verbose_name_plural), url))
    if isinstance(row, Model):
        links.append((str(row), display.url_of(row)))
        title = title or str(row)
    if links and (context.get("cl") or title == links[-1][0] or links[-1][1] == request.path):
        return PagePath(links[:-1], links[-1][0], is_sentence=False)
    return PagePath(links, title, is_sentence=bool(links))


def menu_title(url: object) -> str:
    """Return the title in the menu or the tabs of the page with this URL; "" if it has none."""
    _item, page = _place(str(url))
    return str(page["title"]) if page.get("link") == str(url) else ""


def chapter_of_page(path: str) -> str:
    """Return the chapter of the documentation about a page: that of the nearest page of the menu; "" without one."""
    page = _place(path)[1]
    return str(page.get("chapter", ""))


def _links(path: str, request: HttpRequest) -> list[tuple[str, str]]:
    """Return the links to the item and the page of the menu above a page."""
    item, page = _place(path)
    if not page or page["url"] == "admin:index":
        return []
    links = [(str(page["title"]), page["link"])]
    item_pages = _permitted(item["pages"], request)
    if item["title"] != page["title"] and page in item_pages:
        links.insert(0, (str(item["title"]), item_pages[0]["link"]))
    return links


def _permitted(entries: Sequence[dict[str, Any]], request: HttpRequest) -> list[dict[str, Any]]:
    return [
        entry
        for entry in entries
        if not entry["permissions"] or any(map(request.user.has_perm, entry["permissions"]))
    ]


def _place(path: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the item and the page with the longest URL above a page, empty without one; of two items, the first."""
    above = [(item, page) for item, page in _all_pages() if path.startswith(page["link"])]
    return max(above, key=lambda place: len(place[1]["link"]), default=({}, {}))


def _all_pages() -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    for group in _groups():
        for item in group["items"]:
            for page in (*item["pages"], *item["below"]):
                yield item, page


@cache  # each page has all links, and a URL is made anew each time
def _groups() -> list[dict[str, Any]]:
    return [
        group | {"items": [_with_links(item) for item in group["items"]]} for group in settings.MENU
    ]


def _with_links(item: dict[str, Any]) -> dict[str, Any]:
    linked = {
        kind: [page | {"link": reverse(page["url"])} for page in item[kind]]
        for kind in ("pages", "below")
    }
    return item | linked
