"""The words of the menu, which are also those of headings and page titles."""

from __future__ import annotations

from typing import Any

from django.conf import settings


def entry(url: object) -> dict[str, str]:
    """`group` and `title` of the menu's entry that leads to a list; empty without one."""
    groups: list[dict[str, Any]] = settings.UNFOLD["SIDEBAR"]["navigation"]
    for group in groups:
        for item in group["items"]:
            if str(item["link"]) == str(url):
                return {"group": str(group["title"]), "title": str(item["title"])}
    return {}
