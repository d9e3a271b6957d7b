"""How imports and their rows look: states and verdicts by word, shape and colour; formats in words."""

from __future__ import annotations

from collections.abc import Mapping

from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext

from claims.imports import vm_status
from claims.models import ImportRow, VMImport
from claims.models.imports import Status
from pools.platform.admin import display

# What the word is like among the states that every page has (pools.platform.admin.display), and its shape.
_VERDICTS = {
    "new": ("created", "+"),
    "changed": ("changed", "~"),
    "unchanged": ("unchanged", "="),
    "conflict": ("conflict", "▲"),
    "refused": ("refused", "✕"),
    "skipped": ("ignored", "‖"),
}
VERDICT_HELP = {
    "new": "not in the register yet",
    "changed": "in the register with other values",
    "unchanged": "already registered, unchanged",
    "conflict": "contradicts the register, the network or another row",
    "refused": "cannot be understood, or not be written",
    "skipped": "left out by a person",
}
STATUS_WORDS: dict[str, str] = {
    Status.QUEUED: "waits",
    Status.DRAFTING: "being read",
    Status.DRAFTED: "draft",
    Status.COMMITTING: "being written",
    Status.COMMITTED: "written",
    Status.UNDONE: "undone",
    Status.CANCELLED: "cancelled",
    Status.FAILED: "failed",
}
_STATUSES: dict[str, tuple[str, str]] = {
    Status.QUEUED: ("pending", "◔"),
    Status.DRAFTING: ("running", "◔"),
    Status.DRAFTED: ("open", "○"),
    Status.COMMITTING: ("running", "◔"),
    Status.COMMITTED: ("ok", "●"),
    Status.UNDONE: ("ignored", "↶"),
    Status.CANCELLED: ("ignored", "✕"),
    Status.FAILED: ("failed", "▲"),
}
_STANDINGS = {
    vm_status.PROVISIONED: ("pending", "○", "provisioned", "registered, not seen in the cluster"),
    vm_status.SEEN: ("open", "◔", "seen in the cluster", "the VM is there and does not run"),
    vm_status.RUNNING: ("ok", "●", "running", "runs with what is registered"),
    vm_status.DIFFERING: ("conflict", "≠", "differing", "runs with another MAC or address"),
    vm_status.GONE: ("refused", "✕", "gone", "the entry or claim is no more"),
}  # fmt: skip
FORMATS = {
    "rvtools-xlsx": "RVTools, XLSX",
    "rvtools-csv": "RVTools, CSV",
    "rvtools-zip": "RVTools, ZIP of CSVs",
    "forklift": "MTV inventory, JSON",
    "powercli": "PowerCLI, CSV",
    "template-csv": "our template, CSV",
    "template-xlsx": "our template, XLSX",
    "ippool-yaml": "IPPools, YAML",
    "ipamclaim-yaml": "IPAMClaims, YAML",
    "two-column": "a list",
    "rows": "typed rows",
}


def sign(kind: str, shape: str, word: str, title: str = "") -> SafeString:
    return format_html(
        '<span class="cad-state cad-state-{}" title="{}"><span aria-hidden="true">{}</span> {}</span>',
        kind,
        title,
        shape,
        word,
    )


def verdict(name: str) -> SafeString:
    kind, shape = _VERDICTS[name]
    return sign(kind, shape, name, VERDICT_HELP[name])


def status(vm_import: VMImport) -> SafeString:
    kind, shape = _STATUSES[vm_import.status]
    return sign(kind, shape, STATUS_WORDS[vm_import.status], vm_import.error)


def standing(name: str) -> SafeString:
    return sign(*_STANDINGS[name])


def format_of(vm_import: VMImport) -> str:
    return FORMATS.get(vm_import.format, vm_import.format)


def counts_text(counts: Mapping[str, int]) -> str:
    """`12 new, 3 changed`; of no rows `no rows`."""
    parts = [f"{display.digits(counts[name])} {name}" for name in VERDICT_HELP if counts.get(name)]
    return ", ".join(parts) or gettext("no rows")


def differences(row: ImportRow) -> list[tuple[str, str, str]]:
    """(what, as it is in the register, as it would be) where a row changes something."""
    before = row.before
    if before is None:
        return []
    changes = [("MAC", str(before["mac"] or ""), str(row.mac or ""))] if row.mac else []
    if row.ips:
        changes.append(("IPs", ", ".join(before["ips"]), ", ".join(row.ips)))
    fields = (("VM", "vm"), ("namespace", "namespace"), ("note", "note"))
    changes += [
        (what, before[name], getattr(row, name)) for what, name in fields if getattr(row, name)
    ]
    return [change for change in changes if change[1] != change[2]]
