"""Badges and labels of imports of registers and their rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from pools.models import RegisterImport
from pools.models.register_imports import ImportStatus as Status
from pools.models.register_imports import RegisterRowStatus
from pools.platform import database
from pools.platform.admin import display
from pools.register.imports import progress

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# By the status of a row: its style (static/cadastre), its shape and its meaning.
_ROW_BADGES: dict[str, tuple[str, str, StrOrPromise]] = {
    "new": ("created", "+", _("not registered yet")),
    "changed": ("changed", "~", _("registered with other values")),
    "unchanged": ("unchanged", "=", _("already registered, unchanged")),
    "conflict": ("conflict", "▲", _("in conflict with the register or another row")),
    "refused": ("refused", "✕", _("invalid, or outside of every pool")),
    "skipped": ("ignored", "‖", _("skipped manually")),
}
_STATUS_STYLES: dict[str, tuple[str, str]] = {
    Status.QUEUED: ("pending", "◔"),
    Status.DRAFTING: ("running", "◔"),
    Status.DRAFTED: ("open", "○"),
    Status.COMMITTING: ("running", "◔"),
    Status.COMMITTED: ("ok", "●"),
    Status.UNDONE: ("ignored", "↶"),
    Status.CANCELLED: ("ignored", "✕"),
    Status.FAILED: ("failed", "▲"),
}
FORMATS: dict[str, StrOrPromise] = {
    "netbox": _("NetBox, CSV"),
    "netbox-api": _("NetBox, REST API"),
    "phpipam": _("phpIPAM"),
    "infoblox": _("Infoblox, CSV"),
    "spreadsheet": _("spreadsheet"),
}

# Of the details that an import keeps beside an object (core/register_import/parsing.py).
_DETAILS: dict[str, StrOrPromise] = {
    "status": _("Status"),
    "role": _("Role"),
    "dns_name": _("DNS name"),
    "tenant": _("Tenant"),
    "owner": _("Owner"),
    "vrf": "VRF",
    "site": _("Site"),
    "vlan": "VLAN",
    "mac": _("MAC address"),
    "interface": _("Interface"),
    "device": _("Device"),
    "note": _("Note"),
}


def imported_facts(record: Mapping[str, Any] | None) -> Iterator[tuple[StrOrPromise, str]]:
    """Yield (label, text) of what an imported register says about an address."""
    if record is None:
        return
    if record["description"]:
        yield _("Description"), record["description"]
    yield from (
        (label, record["details"][name])
        for name, label in _DETAILS.items()
        if name in record["details"]
    )


def _badge(style: str, shape: str, label: StrOrPromise, title: StrOrPromise = "") -> SafeString:
    return format_html(
        '<span class="cad-state cad-state-{}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        style,
        title,
        shape,
        label,
    )


def row_status_badge(name: str) -> SafeString:
    style, shape, title = _ROW_BADGES[name]
    return _badge(style, shape, RegisterRowStatus(name).label, title)


def import_status_badge(register_import: RegisterImport) -> SafeString:
    style, shape = _STATUS_STYLES[register_import.status]
    return _badge(style, shape, register_import.get_status_display(), register_import.error)


def format_name(register_import: RegisterImport) -> str:
    return str(FORMATS.get(register_import.format, register_import.format))


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the counts by row status as text: `12 new, 3 changed`, or `no rows`."""
    parts = [
        f"{display.digits(counts[status.value])} {status.label}"
        for status in RegisterRowStatus
        if counts.get(status.value)
    ]
    return ", ".join(parts) or gettext("no rows")


def counts_stack(register_import: RegisterImport) -> SafeString:
    return display.stack(
        [
            format_html(
                '<span class="cad-nowrap">{} {}</span>',
                row_status_badge(status.value),
                display.digits(register_import.counts[status.value]),
            )
            for status in RegisterRowStatus
            if register_import.counts.get(status.value)
        ]
    )


def progress_values(register_import: RegisterImport) -> dict[str, object]:
    """Return `{"status", "working", "percent", "text"}`; percent is None if the number of rows is unknown."""
    shown = progress.import_progress(register_import, database.now())
    return {
        "status": register_import.status,
        "working": progress.is_working(register_import),
        "percent": shown.percent,
        "text": _progress_text(register_import, shown),
    }


def _progress_text(register_import: RegisterImport, shown: progress.ImportProgress) -> str:
    if register_import.status == Status.QUEUED:
        return gettext("Waiting for a worker.")
    done = display.digits(shown.done)
    if shown.total is None:
        return gettext("%(done)s rows") % {"done": done}
    text = gettext("%(done)s of %(total)s rows") % {
        "done": done,
        "total": display.digits(shown.total),
    }
    if shown.remaining is None:
        return text
    return gettext("%(text)s, about %(remaining)s left") % {
        "text": text,
        "remaining": display.duration(max(shown.remaining, 1)),
    }
