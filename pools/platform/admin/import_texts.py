"""What the admin's pages say of imports and of their rows: badges, numbers, reasons, and the button of a commit."""

from collections.abc import Mapping
from typing import Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext
from django_stubs_ext import StrOrPromise

from pools.models.imports import Import, ImportStatus as Status, RowStatus
from pools.platform.admin import display
from pools.platform.imports import states

# By the status of a row: its style, one of those of static/cadastre, its shape, and its meaning.
_ROW_BADGES: dict[str, tuple[str, str, StrOrPromise]] = {
    "new": ("created", "+", _("not registered yet")),
    "changed": ("changed", "~", _("registered with other values")),
    "unchanged": ("unchanged", "=", _("already registered, unchanged")),
    "conflict": ("conflict", "▲", _("in conflict with the register, the network or another row")),
    "invalid": ("refused", "✕", _("cannot be imported as it is")),
    "left_out": ("ignored", "‖", _("left out by a user")),
    "vanished": ("pending", "?", _("the source has it no more: release it, or keep it here")),
    "released": ("ignored", "↓", _("released: the source has it no more, or with other ends")),
}
_STATUS_BADGES: dict[str, tuple[str, str]] = {
    Status.QUEUED: ("pending", "◔"),
    Status.DRAFTING: ("running", "◔"),
    Status.DRAFTED: ("open", "○"),
    Status.COMMITTING: ("running", "◔"),
    Status.COMMITTED: ("ok", "●"),
    Status.UNDONE: ("ignored", "↶"),
    Status.CANCELLED: ("ignored", "✕"),
    Status.FAILED: ("failed", "▲"),
}


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the counts by row status as text: `12 new, 3 changed`, or `no rows`."""
    parts = [
        f"{display.digits(counts[status])} {status.label}"
        for status in RowStatus
        if counts.get(status)
    ]
    return ", ".join(parts) or gettext("no rows")


def row_badge(status: str) -> SafeString:
    style, shape, title = _ROW_BADGES[status]
    return display.badge(style, shape, RowStatus(status).label, title)


def badge(row: Import) -> SafeString:
    return display.badge(*_STATUS_BADGES[row.status], Status(row.status).label, row.error)


def name(row: Import) -> str:
    return row.file_name or gettext("Import %(number)s") % {"number": row.pk}


def counts_stack(row: Import) -> SafeString:
    lines = [
        format_html(
            '<span class="cad-nowrap">{} {}</span>', row_badge(status), display.digits(number)
        )
        for status in RowStatus.values
        if (number := row.counts.get(status))
    ]
    return display.stack(lines)


def commit_text(effect: Mapping[str, int]) -> str:
    """Return what the button that commits a draft says; "" if no row of it would be written."""
    writes, bad = effect["writes"], effect["bad"]
    if not writes:
        return ""
    words = {"writes": display.digits(writes), "bad": display.digits(bad)}
    if not bad:
        return ngettext("Import %(writes)s row", "Import %(writes)s rows", writes) % words
    text = ngettext(
        "Import %(writes)s valid row, leave %(bad)s out",
        "Import %(writes)s valid rows, leave %(bad)s out",
        writes,
    )
    return text % words


def reasons(row: Any) -> list[dict[str, Any]]:
    """Return the reasons of a row: those of its status, then its warnings, then notes."""
    status_reasons = [
        reason
        | {
            "warning": states.is_warning(row.status, reason["code"]),
            "note": states.is_note(reason["code"]),
        }
        for reason in row.reasons
    ]
    return sorted(status_reasons, key=lambda reason: (reason["note"], reason["warning"]))
