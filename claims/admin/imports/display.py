"""Labels of VM imports, and what their rows change."""

from __future__ import annotations

from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from claims.imports import manifests
from claims.models import VMRow
from pools.platform.admin import display

_VM_STATUS_BADGES = {
    manifests.PROVISIONED: (
        "pending",
        "○",
        _("provisioned"),
        _("registered, not yet seen in the cluster"),
    ),
    manifests.SEEN: ("open", "◔", _("seen in the cluster"), _("the VM exists but is not running")),
    manifests.RUNNING: ("ok", "●", _("running"), _("runs with its registered addresses")),
    manifests.DIFFERING: (
        "conflict",
        "≠",
        _("differing"),
        _("runs with another MAC or IP address"),
    ),
    manifests.GONE: ("refused", "✕", _("gone"), _("the entry or claim was deleted")),
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


def vm_status_badge(name: str) -> SafeString:
    return display.badge(*_VM_STATUS_BADGES[name])


def differences(row: VMRow) -> list[tuple[str, str, str]]:
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
