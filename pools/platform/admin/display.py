"""HTML of values on every page: numbers, addresses, times, states, bars, links."""

import functools
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from django.urls import reverse
from django.utils import formats, timezone
from django.utils.functional import lazy
from django.utils.html import format_html, format_html_join, strip_tags
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _, gettext_lazy, ngettext, pgettext
from django_stubs_ext import StrOrPromise

from pools.core import addresses, forecast
from pools.core.kubernetes.connection_status import ConnectionState, ConnectionStatus

_RAISED = str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹")
# By state: the shape that tells it apart without its colour, and its label.
_STATES: dict[str, tuple[str, StrOrPromise]] = {
    "held": ("●", gettext_lazy("allocated")),
    "cooling": ("◐", gettext_lazy("in cooldown")),
    "reserved": ("▨", gettext_lazy("reserved")),
    "free": ("○", gettext_lazy("free")),
    "mixed": ("◧", gettext_lazy("mixed")),
    "active": ("●", gettext_lazy("active")),
    "draining": ("◑", gettext_lazy("draining")),
    "full": ("■", gettext_lazy("full")),
    "ok": ("●", gettext_lazy("ok")),
    "degraded": ("▲", gettext_lazy("degraded")),
    "pending": ("◔", gettext_lazy("pending")),
    "fulfilled": ("●", gettext_lazy("fulfilled")),
    "cancelled": ("✕", gettext_lazy("cancelled")),
    "created": ("+", gettext_lazy("created")),
    "changed": ("~", gettext_lazy("changed")),
    "gained": ("+", gettext_lazy("gained")),
    "lost": ("−", gettext_lazy("lost")),  # noqa: RUF001  # the minus sign
    "moved": ("→", gettext_lazy("moved")),
    "unchanged": ("=", gettext_lazy("unchanged")),
    "refused": ("✕", gettext_lazy("refused")),
    "succeeded": ("●", gettext_lazy("succeeded")),
    "failed": ("▲", gettext_lazy("failed")),
    "running": ("◔", gettext_lazy("running")),
    "open": ("≠", gettext_lazy("open")),
    "conflict": ("▲", gettext_lazy("conflict")),
    "ignored": ("‖", gettext_lazy("ignored")),
    "error": ("■", gettext_lazy("error")),
    "warning": ("▲", gettext_lazy("warning")),
    "info": ("●", gettext_lazy("info")),
    "acknowledged": ("✓", gettext_lazy("acknowledged")),
    "done": ("✓", gettext_lazy("done")),
    "open_step": ("○", gettext_lazy("open")),
    "violated": ("■", gettext_lazy("failed")),
    "unknown": ("?", gettext_lazy("unknown")),
    "planned": ("○", gettext_lazy("planned")),
    "removing": ("◔", gettext_lazy("removing")),
    "orphaned": ("▲", gettext_lazy("orphaned")),
    "drained": ("●", gettext_lazy("drained")),
    "removed": ("✓", gettext_lazy("removed")),
    "kept": ("▨", gettext_lazy("kept")),
    "aborted": ("‖", gettext_lazy("aborted")),
    "leaked": ("▲", gettext_lazy("leaked")),
    "suspected": ("◔", gettext_lazy("suspected")),
}


def _dash() -> SafeString:
    return format_html('<span class="cad-none" title="{}">&ndash;</span>', _("none"))


_LONG_NAME = 28  # characters that a column of names has room for
_LONGEST_CIDR = 43  # characters
DASH = lazy(_dash, SafeString)()  # for a value that is absent


_IPV6_UNITS = (48, 64, 80, 96)  # prefix lengths in which people count


def digits(number: int) -> str:
    """Format 12345 as `12 345`, with thin spaces; beyond a trillion as a power of two or ten."""
    if number >= 10**12:
        if number & (number - 1) == 0:
            return f"2{str(number.bit_length() - 1).translate(_RAISED)}"
        mantissa, _, exponent = f"{number:.2e}".partition("e+")
        return f"{mantissa}·10{exponent.translate(_RAISED)}"
    return f"{number:,}".replace(",", "\u202f")


def size(addresses: int, family: int) -> str:
    """Return a number of addresses; many of IPv6 as networks: `3 /64`, rounded down."""
    for length in _IPV6_UNITS if family == 6 else ():
        if addresses >= 1 << (128 - length):
            return f"{digits(addresses >> (128 - length))} /{length}"
    return digits(addresses)


def number(value: int, *, about: bool = False) -> SafeString:
    """Right-aligned digits with the exact number on hover; `about` marks an estimate."""
    sign = "≈" if about else ""
    return format_html('<span class="cad-num" title="{}">{}{}</span>', value, sign, digits(value))


def plain_cidr(network: addresses.Network | str) -> str:
    """Return a network as text; a network of one address as this address."""
    base, _, length = str(network).partition("/")
    return base if length == ("128" if ":" in base else "32") else str(network)


def address(value: object, url: str = "") -> SafeString:
    """An address in monospace, as a link if `url` is given."""
    text = plain_cidr(str(value))
    is_whole = len(text) <= _LONGEST_CIDR and "://" not in text  # others, such as URLs, may wrap
    style = "cad-mono cad-address" if is_whole else "cad-mono"
    if url:
        return format_html('<a class="{}" href="{}">{}</a>', style, url, text)
    return format_html('<span class="{}">{}</span>', style, text)


def address_link(value: object) -> SafeString:
    """An address or a CIDR as a link to its search results; a range `first-last` as plain text."""
    text = plain_cidr(str(value))
    return address(value, "" if "-" in text else reverse("admin:find", query={"q": text}))


def link(url: str, text: object) -> SafeString:
    """A link; a table shows the beginning of a long name, and all of it on hover."""
    name = str(text)
    if len(name) > _LONG_NAME and " " not in name:
        link_of_name = '<a class="cad-link cad-name" href="{}" title="{}">{}</a>'
        return format_html(link_of_name, url, strip_tags(name), text)
    return format_html('<a class="cad-link" href="{}">{}</a>', url, text)


def search_link(text: str, label: str = "") -> SafeString:
    """A name, such as the VM `shop/web`, as a link to its search results."""
    return link(reverse("admin:find", query={"q": text}), label or text) if text else DASH


def row_link(row: Any, text: object = "") -> SafeString:
    """A link to the change page of a row."""
    return link(url_of(row), text or row)


def url_of(row: Any) -> str:
    """The page of a row; that of a proxy is the page of its table's rows."""
    meta = row._meta.concrete_model._meta
    return _url_pattern(meta.app_label, meta.model_name).format(row.pk)


@functools.cache  # a list has hundreds of links
def _url_pattern(app: str, model: str) -> str:
    return reverse(f"admin:{app}_{model}_change", args=[0]).replace("/0/", "/{}/")


# Of a filter above rows: its label, the number of the rows, its URL, and whether it is chosen.
Chip = tuple[StrOrPromise, int, str, bool]


def state(word: str, title: StrOrPromise = "") -> SafeString:
    """A state as word, shape and colour."""
    return badge(word, *_STATES.get(word, ("•", word)), title)


def state_label(word: str) -> str:
    """The label of a state in the menu of a filter."""
    return str(_STATES.get(word, ("", word))[1])


def badge(style: str, shape: str, label: StrOrPromise, title: StrOrPromise = "") -> SafeString:
    """A label with the colour of a state and a shape."""
    return format_html(
        '<span class="cad-state cad-state-{}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        style,
        title,
        shape,
        label,
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


def connection_status(status: ConnectionStatus | None) -> SafeString:
    """The state of a cluster's connection as word, shape and colour; its explanation on hover."""
    if status is None:
        return format_html(
            '<span class="cad-state cad-dim">{}</span>', pgettext("cluster", "not connected")
        )
    return format_html(
        '<span class="cad-state {}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        _LEVELS.get(status.state.level, "cad-dim"),
        connection_sentence(status),
        _SHAPES_OF_CLUSTERS[status.state],
        _(status.state.word),
    )


def connection_sentence(status: ConnectionStatus) -> str:
    """The sentences that explain the state of a connection, and its last error."""
    sentences = [_(sentence) for sentence in status.sentences]
    if status.error:
        sentences.append(_("Last error: %(error)s") % {"error": status.error})
    return " ".join(sentences)


def timestamp(moment: datetime | None) -> SafeString:
    """A point in time as `3 hours ago` or `in 2 days`, with the exact time on hover."""
    if moment is None:
        return DASH
    return _time(moment, relative((timezone.now() - moment).total_seconds()))


def exact_time(moment: datetime | None) -> SafeString:
    """A point in time as `2026-11-19 14:02:10 CET` in the zone of the page, with `3 hours ago` on hover."""
    if moment is None:
        return DASH
    age = relative((timezone.now() - moment).total_seconds())
    return format_html(
        '<time datetime="{}" title="{}">{}</time>', moment.isoformat(), age, _exact(moment)
    )


def next_time(moment: datetime | None) -> SafeString:
    """When something happens next: as `timestamp`, or `due` once that is past."""
    if moment is None or moment > timezone.now():
        return timestamp(moment)
    return _time(moment, _("due"))


def _time(moment: datetime, text: str) -> SafeString:
    return format_html(
        '<time datetime="{}" title="{}">{}</time>',
        moment.isoformat(),
        _exact(moment),
        text,
    )


def _exact(moment: datetime) -> str:
    return formats.date_format(timezone.localtime(moment), "Y-m-d H:i:s T")  # no text: a format


def relative(seconds: float) -> str:
    """Format the seconds since a point in time as `3 hours ago`, or `in 2 days` if they are negative."""
    if abs(seconds) < 1:
        return _("now")
    words = duration(abs(seconds))
    if seconds > 0:
        return _("%(duration)s ago") % {"duration": words}
    return _("in %(duration)s") % {"duration": words}


def duration(seconds: float) -> str:
    """Format seconds in the largest unit that fits, rounded down: `3 hours`."""
    days, hours, minutes = (int(seconds // size) for size in (86400, 3600, 60))
    if days:
        return ngettext("%(count)d day", "%(count)d days", days) % {"count": days}
    if hours:
        return ngettext("%(count)d hour", "%(count)d hours", hours) % {"count": hours}
    if minutes:
        return ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes}
    return ngettext("%(count)d second", "%(count)d seconds", int(seconds)) % {"count": int(seconds)}


def share_bar(share: float) -> SafeString:
    """A share between 0 and 1 as a bar and a percentage."""
    return format_html(
        '<span class="cad-bar"><svg viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">'
        '<rect class="m-free" width="100" height="8"/><rect class="m-held" width="{}" height="8"/></svg>'
        '<span class="cad-percent">{}</span></span>',
        max(round(100 * share, 2), 0.8) if share else 0,
        "<1%" if 0 < share < 0.01 else f"{forecast.whole_percent(share)}%",
    )


def holder(kind: str, holder_id: str) -> SafeString:
    """A holder as `node fra-1`, with a link to its search results."""
    if not holder_id:
        return DASH
    url = reverse("admin:find", query={"q": holder_id})
    return format_html('<span class="cad-kind">{}</span> {}', kind, link(url, holder_id))


def two_lines(above: object, below: object) -> SafeString:
    """A value, and a detail of it in the line below."""
    return format_html(
        '<span class="cad-stack"><span>{}</span><span class="cad-dim">{}</span></span>',
        above,
        below,
    )


def stack(lines: Sequence[object], *, most: int = 0, wraps: bool = True) -> SafeString:
    """Lines, one below the other; with `most`, the number of the others in the last line."""
    if not lines:
        return DASH
    shown = list(lines[:most] if most else lines)
    if len(shown) < len(lines):
        shown.append(_("and %(number)s more") % {"number": len(lines) - len(shown)})
    return format_html(
        '<span class="cad-stack{}">{}</span>',
        "" if wraps else " cad-nowrap",
        format_html_join("", "<span>{}</span>", ((line,) for line in shown)),
    )
