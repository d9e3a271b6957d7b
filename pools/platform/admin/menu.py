"""The menu: titles, which headings and page titles use too, and the chapters about its pages."""

from __future__ import annotations

from functools import cache
from typing import Any

from django.conf import settings


def entry(url: object) -> dict[str, str]:
    """Return `group` and `title` of the menu item that links to `url`; empty if there is none."""
    groups: list[dict[str, Any]] = settings.UNFOLD["SIDEBAR"]["navigation"]
    for group in groups:
        for item in group["items"]:
            if str(item["link"]) == str(url):
                return {"group": str(group["title"]), "title": str(item["title"])}
    return {}


def chapter(path: str) -> str:
    """Return the chapter of the documentation about a page: that of the nearest menu item; "" without one."""
    chapters = _chapters()
    above = [link for link in chapters if path.startswith(link)]
    return chapters[max(above, key=len)] if above else ""


@cache  # every page asks, and a link is a URL that is made anew each time
def _chapters() -> dict[str, str]:
    groups: list[dict[str, Any]] = settings.UNFOLD["SIDEBAR"]["navigation"]
    return {
        str(item["link"]): str(item.get("chapter", ""))
        for group in groups
        for item in group["items"]
    }
