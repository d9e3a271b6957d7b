"""How full pools are, as bars and percentages of the pages."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from pools.platform.admin.display import digits
from pools.register import usage


def bar(counts: usage.Usage, *, label: str = "") -> SafeString:
    """Held, cooling and reserved shares of the capacity, and the utilization in per cent."""
    total = counts.capacity or 1
    offset, parts = 0.0, []
    for kind, count in (
        ("held", counts.held),
        ("cooling", counts.cooling),
        ("reserved", counts.reserved),
    ):
        if count:
            # What is there can be seen, however small its share is.
            width = max(round(100 * count / total, 2), 0.8)
            parts.append((kind, round(offset, 2), width))
            offset += width
    level = "full" if not counts.free else "high" if counts.is_nearly_full else "fine"
    return format_html(
        '<span class="cad-bar cad-bar-{}" title="{}">{}'
        '<svg viewBox="0 0 100 8" preserveAspectRatio="none" role="img" aria-label="{}">'
        '<rect class="m-free" width="100" height="8"/>{}</svg>'
        '<span class="cad-percent">{}</span></span>',
        level,
        _counts(counts),
        format_html('<span class="cad-bar-label">{}</span>', label) if label else "",
        _counts(counts),
        format_html_join("", '<rect class="m-{}" x="{}" width="{}" height="8"/>', parts),
        percent(counts),
    )


def percent(counts: usage.Usage) -> str:
    """Never 100 while there is a free block, never 0 while one is used."""
    return "<1%" if counts.used and not counts.percent else f"{counts.percent}%"


def highest_utilization(families: Mapping[int, usage.Usage]) -> str:
    """The utilization of the fuller family, in per cent."""
    return percent(max(families.values(), key=lambda counts: counts.ratio)) if families else ""


def bars(families: Mapping[int, usage.Usage]) -> SafeString:
    """One bar for each family."""
    labelled = len(families) > 1
    return format_html_join(
        "",
        "{}",
        (
            (bar(counts, label=f"v{family}" if labelled else ""),)
            for family, counts in families.items()
        ),
    )


def _counts(counts: usage.Usage) -> str:
    numbers = (counts.held, counts.cooling, counts.reserved, counts.free, counts.capacity)
    held, cooling, reserved, free, capacity = (digits(number) for number in numbers)
    text = (
        gettext(
            "about %(held)s held, %(cooling)s cooling, %(reserved)s reserved, %(free)s free of %(capacity)s"
        )
        if counts.approximate
        else gettext(
            "%(held)s held, %(cooling)s cooling, %(reserved)s reserved, %(free)s free of %(capacity)s"
        )
    )
    return text % {
        "held": held,
        "cooling": cooling,
        "reserved": reserved,
        "free": free,
        "capacity": capacity,
    }
