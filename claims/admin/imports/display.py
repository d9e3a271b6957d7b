"""Badges and labels of imports, their rows and their formats."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from claims.imports import vm_status
from claims.models import ImportRow, VMImport
from claims.models.imports import Status
from pools.platform.admin import display

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

# By the status of a row: its style, one of those of pools.platform.admin.display, and its shape.
_ROW_STATUS_STYLES = {
    "new": ("created", "+"),
    "changed": ("changed", "~"),
    "unchanged": ("unchanged", "="),
    "conflict": ("conflict", "▲"),
    "refused": ("refused", "✕"),
    "skipped": ("ignored", "‖"),
}
ROW_STATUS_HELP = {
    "new": _("not registered yet"),
    "changed": _("registered with other values"),
    "unchanged": _("already registered, unchanged"),
    "conflict": _("in conflict with the register, the network or another row"),
    "refused": _("invalid, or not allowed to be written"),
    "skipped": _("skipped manually"),
}
ROW_STATUS_LABELS = {
    "new": _("new"),
    "changed": _("changed"),
    "unchanged": _("unchanged"),
    "conflict": _("conflict"),
    "refused": _("refused"),
    "skipped": _("skipped"),
}
STATUS_LABELS: dict[str, StrOrPromise] = {
    Status.QUEUED: _("queued"),
    Status.DRAFTING: _("reading"),
    Status.DRAFTED: _("draft"),
    Status.COMMITTING: _("writing"),
    Status.COMMITTED: _("written"),
    Status.UNDONE: _("undone"),
    Status.CANCELLED: _("cancelled"),
    Status.FAILED: _("failed"),
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
_VM_STATUS_BADGES = {
    vm_status.PROVISIONED: (
        "pending",
        "○",
        _("provisioned"),
        _("registered, not yet seen in the cluster"),
    ),
    vm_status.SEEN: ("open", "◔", _("seen in the cluster"), _("the VM exists but is not running")),
    vm_status.RUNNING: ("ok", "●", _("running"), _("runs with its registered addresses")),
    vm_status.DIFFERING: (
        "conflict",
        "≠",
        _("differing"),
        _("runs with another MAC or IP address"),
    ),
    vm_status.GONE: ("refused", "✕", _("gone"), _("the entry or claim was deleted")),
}
FORMATS: dict[str, StrOrPromise] = {
    "rvtools-xlsx": _("RVTools, XLSX"),
    "rvtools-csv": _("RVTools, CSV"),
    "rvtools-zip": _("RVTools, ZIP of CSVs"),
    "forklift": _("MTV inventory, JSON"),
    "powercli": _("PowerCLI, CSV"),
    "template-csv": _("template, CSV"),
    "template-xlsx": _("template, XLSX"),
    "ippool-yaml": _("IPPools, YAML"),
    "ipamclaim-yaml": _("IPAMClaims, YAML"),
    "two-column": _("list"),
    "rows": _("typed rows"),
}


def badge(style: str, shape: str, label: StrOrPromise, title: StrOrPromise = "") -> SafeString:
    return format_html(
        '<span class="cad-state cad-state-{}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        style,
        title,
        shape,
        label,
    )


def row_status_badge(name: str) -> SafeString:
    style, shape = _ROW_STATUS_STYLES[name]
    return badge(style, shape, ROW_STATUS_LABELS[name], ROW_STATUS_HELP[name])


def import_status_badge(vm_import: VMImport) -> SafeString:
    style, shape = _STATUS_STYLES[vm_import.status]
    return badge(style, shape, STATUS_LABELS[vm_import.status], vm_import.error)


def vm_status_badge(name: str) -> SafeString:
    return badge(*_VM_STATUS_BADGES[name])


def format_name(vm_import: VMImport) -> str:
    return str(FORMATS.get(vm_import.format, vm_import.format))


def counts_text(counts: Mapping[str, int]) -> str:
    """Return the counts by row status as text: `12 new, 3 changed`, or `no rows`."""
    parts = [
        f"{display.digits(counts[name])} {label}"
        for name, label in ROW_STATUS_LABELS.items()
        if counts.get(name)
    ]
    return ", ".join(parts) or gettext("no rows")


def differences(row: ImportRow) -> list[tuple[str, str, str]]:
    """Return (label, registered value, new value) of each value that a row changes."""
    before = row.before
    if before is None:
        return []
    changes = [("MAC", str(before["mac"] or ""), str(row.mac or ""))] if row.mac else []
    if row.ips:
        changes.append(("IPs", ", ".join(before["ips"]), ", ".join(row.ips)))
    fields = (("VM", "vm"), (gettext("namespace"), "namespace"), (gettext("note"), "note"))
    changes += [
        (label, before[name], getattr(row, name)) for label, name in fields if getattr(row, name)
    ]
    return [change for change in changes if change[1] != change[2]]
