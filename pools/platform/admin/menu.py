"""The menu: titles, which headings and page titles use too, and the chapters about its pages."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import Any

from django.conf import settings
from django.http import HttpRequest
from django.urls import reverse


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """Return the groups of the menu with the items that the user may open (unfold: SIDEBAR)."""
    nearest = _nearest_item(request.path)
    here = nearest and (nearest["url"] != "admin:index" or request.path == nearest["link"])
    return [
        group
        | {
            "items": [
                item | {"active": here and nearest in (item, *item["below"])}
                for item in group["items"]
                if _is_permitted(item, request)
            ]
        }
        for group in _groups()
    ]


def entry(url: object) -> dict[str, str]:
    """Return `group` and `title` of the item that links to `url`, in the menu or below it; empty if there is none."""
    for group in _groups():
        for item in _items(group):
            if item["link"] == str(url):
                return {"group": str(group["title"]), "title": str(item["title"])}
    return {}


def chapter(path: str) -> str:
    """Return the chapter of the documentation about a page: that of the nearest menu item; "" without one."""
    item = _nearest_item(path)
    return item["chapter"] if item else ""


def _is_permitted(item: dict[str, Any], request: HttpRequest) -> bool:
    names = item["permissions"]
    return not names or any(request.user.has_perm(name) for name in names)


def _nearest_item(path: str) -> dict[str, Any] | None:
    """Return the item with the longest URL above a page."""
    above = [item for group in _groups() for item in _items(group) if path.startswith(item["link"])]
    return max(above, key=lambda item: len(item["link"]), default=None)


def _items(group: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the items of a group and those below them."""
    for item in group["items"]:
        yield from (item, *item["below"])


@cache  # each page has all links, and a URL is made anew each time
def _groups() -> list[dict[str, Any]]:
    return [
        group | {"items": [_with_link(item) for item in group["items"]]} for group in settings.MENU
    ]


def _with_link(item: dict[str, Any]) -> dict[str, Any]:
    below = [_with_link(other) for other in item.get("below", ())]
    return item | {"link": reverse(item["url"]), "below": below}
