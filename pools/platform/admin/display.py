"""How values look on every page: numbers, addresses, times, states, bars, links."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import formats, timezone
from django.utils.html import format_html
from django.utils.safestring import SafeString

from pools.core import addresses, shares
from pools.core.kubernetes.connection_status import ConnectionState, ConnectionStatus

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
DASH = SafeString('<span class="cad-none" title="none">&ndash;</span>')
# A shape tells a state to whoever cannot tell its colour.
SHAPES = {
    "held": "●",
    "cooling": "◐",
    "reserved": "▨",
    "free": "○",
    "mixed": "◧",
    "active": "●",
    "draining": "◑",
    "full": "■",
    "ok": "●",
    "degraded": "▲",
    "pending": "◔",
    "fulfilled": "●",
    "cancelled": "✕",
    "created": "+",
    "changed": "~",
    "unchanged": "=",
    "refused": "✕",
    "succeeded": "●",
    "failed": "▲",
    "running": "◔",
    "open": "≠",
    "conflict": "▲",
    "ignored": "‖",
    "error": "■",
    "warning": "▲",
    "violated": "■",
    "clean": "●",
    "repaired": "✓",
    "partial": "◔",
    "unchecked": "○",
    "unknown": "?",
    "planned": "○",
    "removing": "◔",
    "orphaned": "▲",
    "drained": "●",
    "removed": "✓",
    "kept": "▨",
    "aborted": "‖",
    "leaked": "▲",
    "suspected": "◔",
}


def digits(number: int) -> str:
    """12345 -> `12 345`, with thin spaces; beyond a trillion as a power of two or ten."""
    if number >= 10**12:
        if number & (number - 1) == 0:
            return f"2{str(number.bit_length() - 1).translate(_RAISED)}"
        mantissa, _, exponent = f"{number:.2e}".partition("e+")
        return f"{mantissa}·10{exponent.translate(_RAISED)}"
    return f"{number:,}".replace(",", "\u202f")


def number(value: int, *, about: bool = False) -> SafeString:
    """Right-aligned digits, the exact number on hover; `about` marks an estimate."""
    sign = "≈" if about else ""
    return format_html('<span class="cad-num" title="{}">{}{}</span>', value, sign, digits(value))


def plain_cidr(network: addresses.Network | str) -> str:
    """A network; of one address, the address."""
    base, _, length = str(network).partition("/")
    return base if length == ("128" if ":" in base else "32") else str(network)


def address(value: object, url: str = "") -> SafeString:
    """Monospaced, and a link where it leads somewhere."""
    text = plain_cidr(str(value))
    if url:
        return format_html('<a class="cad-mono" href="{}">{}</a>', url, text)
    return format_html('<span class="cad-mono">{}</span>', text)


def found(value: object) -> SafeString:
    """An address or a CIDR that leads to what is known of it; a range `first-last` leads nowhere."""
    text = plain_cidr(str(value))
    return address(value, "" if "-" in text else reverse("admin:find", query={"q": text}))


def link(url: str, text: object) -> SafeString:
    return format_html('<a class="cad-link" href="{}">{}</a>', url, text)


def named(text: str, shown: str = "") -> SafeString:
    """A name, such as `shop/web` of a VM, that leads to all that is known of it."""
    return link(reverse("admin:find", query={"q": text}), shown or text) if text else DASH


def to(row: Any, text: object = "") -> SafeString:
    """A link to the page of a row."""
    return link(url_of(row), text or row)


def url_of(row: Any) -> str:
    return reverse(f"admin:{row._meta.app_label}_{row._meta.model_name}_change", args=[row.pk])


def state(word: str, title: str = "") -> SafeString:
    """A state: word, shape and colour."""
    return format_html(
        '<span class="cad-state cad-state-{}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        word,
        title,
        SHAPES.get(word, "•"),
        word,
    )


_LEVELS = {"good": "cad-state-ok", "warn": "cad-state-pending", "bad": "cad-state-degraded"}
_SHAPES_OF_CLUSTERS = {
    ConnectionState.NEVER_SYNCED: "○",
    ConnectionState.HEALTHY: "●",
    ConnectionState.STALE: "◔",
    ConnectionState.UNAUTHORIZED: "⊘",
    ConnectionState.UNREACHABLE: "▲",
    ConnectionState.FORBIDDEN: "⊗",
    ConnectionState.CRD_MISSING: "◇",
    ConnectionState.INCOMPLETE: "◐",
    ConnectionState.IDENTITY_CHANGED: "≠",
    ConnectionState.FAILING: "■",
    ConnectionState.PAUSED: "‖",
}


def standing(one: ConnectionStatus | None) -> SafeString:
    """How a cluster stands: word, shape and colour; what it means on hover."""
    if one is None:
        return SafeString('<span class="cad-state cad-dim">not connected</span>')
    return format_html(
        '<span class="cad-state {}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        _LEVELS.get(one.state.level, "cad-dim"),
        one.sentence,
        _SHAPES_OF_CLUSTERS[one.state],
        one.state.word,
    )


def when(moment: datetime | None) -> SafeString:
    """`3 hours ago` or `in 2 days`, the exact time on hover."""
    if moment is None:
        return DASH
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        formats.date_format(timezone.localtime(moment), "Y-m-d H:i:s T"),
        relative((timezone.now() - moment).total_seconds()),
    )


def relative(seconds: float) -> str:
    """Seconds since, as one number and its unit; negative ones are ahead."""
    words = duration(abs(seconds))
    if words == "0 seconds":
        return "now"
    return f"{words} ago" if seconds > 0 else f"in {words}"


def duration(seconds: float) -> str:
    """The largest unit that fits, rounded down: `3 hours`."""
    for unit, size in (("day", 86400), ("hour", 3600), ("minute", 60), ("second", 1)):
        count = int(seconds // size)
        if count:
            return f"{count} {unit}{'s' * (count > 1)}"
    return "0 seconds"


def share_bar(share: float) -> SafeString:
    """A part of something that has no end of its own, 0 to 1."""
    return format_html(
        '<span class="cad-bar"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="m-free" width="100" height="8"/><rect class="m-held" width="{}" height="8"/></svg>'
        '<span class="cad-percent">{}</span></span>',
        max(round(100 * share, 2), 0.8) if share else 0,
        "<1%" if 0 < share < 0.01 else f"{shares.whole_percent(share)}%",
    )


def holder(kind: str, holder_id: str) -> SafeString:
    """`node fra-1`, a link to all that it holds."""
    if not holder_id:
        return DASH
    url = reverse("admin:find", query={"q": holder_id})
    return format_html(
        '<span class="cad-kind">{}</span> <a class="cad-link" href="{}">{}</a>',
        kind,
        url,
        holder_id,
    )
