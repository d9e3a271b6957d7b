"""Titles of the menu, which headings and page titles use too."""

from __future__ import annotations

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
