"""The menu: titles, which headings and page titles use too, and the chapters about its pages."""

from __future__ import annotations

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
                item | {"active": here and item is nearest}
                for item in group["items"]
                if _is_permitted(item, request)
            ]
        }
        for group in _groups()
    ]


def entry(url: object) -> dict[str, str]:
    """Return `group` and `title` of the menu item that links to `url`; empty if there is none."""
    for group in _groups():
        for item in group["items"]:
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
    above = [
        item for group in _groups() for item in group["items"] if path.startswith(item["link"])
    ]
    return max(above, key=lambda item: len(item["link"]), default=None)


@cache  # each page has all links, and a URL is made anew each time
def _groups() -> list[dict[str, Any]]:
    return [
        group | {"items": [item | {"link": reverse(item["url"])} for item in group["items"]]}
        for group in settings.MENU
    ]
