"""The page of an import of VMs: its network mapping, its rows, and after the commit the status of its VMs."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse
from django.urls import reverse
from django.utils.html import format_html
from django.utils.safestring import SafeString
from django.utils.translation import gettext, gettext_lazy as _, ngettext

from claims.access import namespaces
from claims.admin import scoped
from claims.admin.imports import mapping, page
from claims.core.networks import static_vms
from claims.entries import ippools
from claims.imports import drafts, manifests, mapping as import_mapping
from claims.models import Network, VMImport, VMRow, Wave
from claims.models.imports import ImportTarget
from claims.networks import networks
from claims.waves import waves
from pools.core import errors
from pools.models.imports import ImportStatus as Status
from pools.platform.admin import display, import_texts, lists, pages

_SHOWN_BY_THE_ROW = frozenset({"differs", "vm_name_changed"})
# The texts of a row that can be corrected.
_CORRECTED = {
    "vm": _("VM"),
    "mac": _("MAC"),
    "ips": _("IPs"),
    "namespace": _("Namespace"),
    "port_group": _("Port group"),
    "note": _("Note"),
}


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


class VMImportPage(page.ImportPage):
    engine = drafts.IMPORTS
    template = "import_vm.html"
    what = _("VMs")
    formats = {
        "rvtools-xlsx": _("RVTools, XLSX"),
        "rvtools-csv": _("RVTools, CSV"),
        "rvtools-zip": _("RVTools, ZIP of CSVs"),
        "forklift": _("MTV inventory, JSON"),
        "kubevirt": _("VMs of KubeVirt"),
        "vsphere": _("VMs of vSphere, JSON of govc"),
        "ovirt": _("VMs of oVirt, JSON"),
        "powercli": _("PowerCLI or another table"),
        "template-csv": _("template, CSV"),
        "template-xlsx": _("template, XLSX"),
        "ippool-yaml": _("IPPools, YAML"),
        "ipamclaim-yaml": _("IPAMClaims, YAML"),
        "two-column": _("list"),
        "rows": _("typed rows"),
    }
    undo_text = _(
        "The import cannot be undone while a VM runs with one of these records, or if one was"
        " changed afterwards."
    )

    def post_map(self) -> HttpResponse | None:
        """Save the changed mappings and revalidate all rows; with errors or conflicts show the form again."""
        form = mapping.sent_form(self.request, self.row)
        if form.is_valid():
            try:
                changed = drafts.change_mapping(
                    self.row.pk, form.changes(), version=form.check_version, **self.actor
                )
            except errors.VersionMismatch:
                pass  # the form has the conflicts
            except errors.InvalidInput as error:
                pages.add_errors(form, error)
            else:
                self.report(gettext("All rows were validated again: %(counts)s."), changed)
                return None
        return self.page(groups=mapping.mapping_context(self.request, self.row, form))

    def context(self) -> dict[str, Any]:
        request, row = self.request, self.row
        drafted = row.status == Status.DRAFTED
        may_change = drafted and self.may_change
        return {
            "everything": scoped.request_scope(request).everything,
            "lacking": drafts.rows_lacking_family(row).count() if may_change else 0,
            "groups": mapping.mapping_context(request, row) if drafted else None,
            "without_namespace": import_mapping.without_namespace(row) if drafted else 0,
            "waves": _available_waves(request, row),
            "vm_statuses": _vm_statuses(row),
            "follows": _is_written_to_cluster(row),
        }

    def lines(self, rows: list[Any]) -> dict[str, Any]:
        networks = Network.objects.in_bulk({line.network_id for line in rows})
        for line in rows:
            line.network = networks.get(line.network_id)
        lines = list(_lines(self.row, rows))
        renamed = any(line["renamed"] for line in lines)
        return {"rows": lines, "shared_notes": _share_notes(lines), "renamed": renamed}

    def undo_effects(self) -> list[str]:
        if not _is_written_to_cluster(self.row):
            return []
        synced = gettext("The next sync writes these changes to %(cluster)s.")
        return [synced % {"cluster": self.row.cluster.name}]

    def inputs(self, row: VMRow) -> Iterator[page.Input]:
        for name, label in _CORRECTED.items():
            value = row.texts[name]
            yield name, label, ", ".join(value) if name == "ips" else value

    def corrections(self, sent: Mapping[str, str]) -> dict[str, Any]:
        values: dict[str, Any] = {
            name: sent[name][: drafts.MOST_IPS * 100] for name in _CORRECTED if name in sent
        }
        if "ips" in values:
            values["ips"] = values["ips"].replace(",", " ").split()[: drafts.MOST_IPS]
        return values

    def post_free(self) -> None:
        line = drafts.assign_free_addresses(self.row.pk, self.row_number(), **self.actor)
        words = {"row": line.line, "ips": ", ".join(line.ips)}
        messages.success(self.request, gettext("Row %(row)s has %(ips)s now.") % words)

    def post_missing(self) -> None:
        changed = drafts.assign_missing_families(self.row.pk, **self.actor)
        self.report(gettext("Completed: %(counts)s."), changed)

    def post_wave(self) -> None:
        """Add the import's VMs to a new wave if a name was entered, else to the selected wave."""
        request, vm_import, author = self.request, self.row, self.actor["author"]
        pages.require(request, "claims.change_wave", namespaces.EVERY_NAMESPACE)
        name = request.POST.get("wave_name", "").strip()
        with transaction.atomic():
            if name:
                pages.require(request, "claims.add_wave")
                wave = waves.create(vm_import.cluster, name, author=author)
            elif not request.POST.get("wave"):
                raise errors.InvalidInput.for_field(
                    "wave_name", "required", gettext("Enter a name")
                )
            else:
                wave = waves.get(lists.parse_id(request.POST.get("wave", "")))
                if wave.cluster_id != vm_import.cluster_id:
                    raise errors.NotFound(
                        gettext("The cluster %(cluster)s has no such wave.")
                        % {"cluster": vm_import.cluster}
                    )
            added = waves.add_import(wave.pk, vm_import, author=author)
        link = display.link(display.url_of(wave), wave.name)
        text = ngettext(
            "{count} VM was added to the wave {wave}.",
            "{count} VMs were added to the wave {wave}.",
            added,
        )
        messages.success(request, format_html(text, count=display.digits(added), wave=link))


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


def _lines(vm_import: VMImport, rows: list[VMRow]) -> Iterator[dict[str, Any]]:
    statuses: dict[int, str] = {}
    if vm_import.status == Status.COMMITTED:
        statuses = manifests.row_statuses(vm_import, [row.number for row in rows])
    for row in rows:
        vm_status_name = statuses.get(row.number)
        yield {
            "row": row,
            "vm": row.vm or row.source_vm,
            "link": reverse("admin:find", query={"q": row.vm}) if row.written else "",
            "renamed": row.source_vm if row.vm and row.source_vm != row.vm else "",
            "mac": row.mac or row.source_mac,
            "ips": row.ips or row.source_ips,
            "namespace": row.namespace or row.source_namespace,
            "reasons": [
                reason
                for reason in import_texts.reasons(row)
                if reason["code"] not in _SHOWN_BY_THE_ROW
            ],
            "differences": differences(row),
            "vm_status": vm_status_badge(vm_status_name) if vm_status_name else "",
            "choices": list(_address_choices(row)),
        }


def _address_choices(row: VMRow) -> Iterator[tuple[str, str]]:
    """Yield each address that the row could keep, if it has too many, with the addresses it has then."""
    if any(reason["code"] == static_vms.TOO_MANY for reason in row.reasons):
        for ip in row.ips:
            rest = [other for other in row.ips if (":" in other) != (":" in ip)]
            if len(rest) + 1 < len(row.ips):
                yield ip, ", ".join([ip, *rest])


def _share_notes(lines: list[dict[str, Any]]) -> list[tuple[str, int]]:
    """Return each warning or note that several rows have, and how many; in the rows it is replaced by its number."""
    notes = [
        reason
        for line in lines
        for reason in line["reasons"]
        if reason["note"] or reason["warning"]
    ]
    counts = Counter(note["message"] for note in notes)
    shared = [(text, count) for text, count in counts.items() if count > 1]
    numbers = {text: number for number, (text, _count) in enumerate(shared, 1)}
    for note in notes:
        note["number"] = numbers.get(note["message"], 0)
    for line in lines:
        line["reasons"].sort(key=lambda reason: bool(reason.get("number")))
    return shared


# --- after the commit -----------------------------------------------------------------------------


def _available_waves(request: HttpRequest, vm_import: VMImport) -> list[Wave] | None:
    """Return the waves to which the import's VMs can be added; None if the user may not do that."""
    may_change_waves = request.user.has_perms(["claims.change_wave", namespaces.EVERY_NAMESPACE])
    if vm_import.status != Status.COMMITTED or not may_change_waves:
        return None
    return list(Wave.objects.filter(cluster=vm_import.cluster_id).order_by("name")[: scoped.MOST])


def _vm_statuses(vm_import: VMImport) -> list[tuple[SafeString, str]]:
    """Return the number of rows by status of their VM, once the import is committed."""
    if vm_import.status != Status.COMMITTED:
        return []
    return [
        (vm_status_badge(name), display.digits(number))
        for name, number in manifests.status_counts(vm_import).items()
        if number
    ]


def _is_written_to_cluster(vm_import: VMImport) -> bool:
    """Return True if the next sync writes the records of the import to their cluster."""
    if vm_import.target == ImportTarget.IPPOOL:
        return ippools.writes_ippools(vm_import.cluster)
    return networks.is_managed(vm_import.cluster)
