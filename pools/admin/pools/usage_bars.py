"""How full pools are, as bars and percentages of the pages."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from pools.platform.admin.display import digits
from pools.register import usage


def bar(one: usage.Usage, *, label: str = "") -> SafeString:
    """Held, cooling and reserved shares of the capacity, and the utilization in per cent."""
    total = one.capacity or 1
    at, parts = 0.0, []
    for kind, count in (("held", one.held), ("cooling", one.cooling), ("reserved", one.reserved)):
        if count:
            # What is there can be seen, however small its share is.
            width = max(round(100 * count / total, 2), 0.8)
            parts.append((kind, round(at, 2), width))
            at += width
    level = "full" if not one.free else "high" if one.is_nearly_full else "fine"
    return format_html(
        '<span class="cad-bar cad-bar-{}" title="{}">{}'
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="m-free" width="100" height="8"/>{}</svg>'
        '<span class="cad-percent">{}</span></span>',
        level,
        _counts(one),
        format_html('<span class="cad-bar-label">{}</span>', label) if label else "",
        _counts(one),
        format_html_join("", '<rect class="m-{}" x="{}" width="{}" height="8"/>', parts),
        percent(one),
    )


def percent(one: usage.Usage) -> str:
    """Never 100 while there is a free block, never 0 while one is used."""
    return "<1%" if one.used and not one.percent else f"{one.percent}%"


def most(families: Mapping[int, usage.Usage]) -> str:
    """The utilization of the fuller family, in per cent."""
    return percent(max(families.values(), key=lambda one: one.ratio)) if families else ""


def bars(families: Mapping[int, usage.Usage]) -> SafeString:
    """One bar for each family."""
    named = len(families) > 1
    return format_html_join(
        "",
        "{}",
        ((bar(one, label=f"v{family}" if named else ""),) for family, one in families.items()),
    )


def _counts(one: usage.Usage) -> str:
    counts = (one.held, one.cooling, one.reserved, one.free, one.capacity)
    held, cooling, reserved, free, capacity = (digits(count) for count in counts)
    about = "about " if one.approximate else ""
    return f"{about}{held} held, {cooling} cooling, {reserved} reserved, {free} free of {capacity}"
