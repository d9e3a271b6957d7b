"""Imports of VMs: a file, list or form becomes a stored draft, which users correct and commit.

pools/platform/imports/lifecycle.py has what all imports share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from claims.access import namespaces
from claims.core.vm_import.vm_interface import MAX_NAMES, Skipped
from claims.imports import commit, corrections, formats, mapping, validation
from claims.imports import rows as import_rows
from claims.models import VMImport, VMRow
from claims.models.imports import ImportTarget
from pools.core import errors
from pools.platform import database, events
from pools.platform.imports import lifecycle, states


def is_limited(user: Any, target: str) -> bool:
    """Return True if the user may import for their own namespaces only. Raises NotAllowed."""
    model = "ipamclaim" if target == ImportTarget.IPAMCLAIMS else "entry"
    everything = user.has_perm(namespaces.EVERY_NAMESPACE)
    if everything and all(user.has_perm(f"claims.{verb}_{model}") for verb in ("add", "change")):
        return False
    if not user.has_perm("claims.request_address"):
        raise errors.NotAllowed(f"This needs the permission claims.add_{model}.")
    return True


# Reasons to skip an item of a file that need a note: a user may miss such a VM among the rows.
_LEFT_OUT = {
    "template": "Templates",
    "srm_placeholder": "Placeholders of Site Recovery Manager",
    "vcls": "VMs of vSphere Cluster Services",
    "floating_address": "Floating addresses, which belong to no interface, of the VMs",
    "guest_only_interface": "Interfaces that only the guest has, of the VMs",
}


def _left_out_notes(skipped: Skipped) -> list[dict[str, str]]:
    """Return a note for each reason, with the names of the VMs that were left out."""
    notes = []
    for reason, names in skipped.names.items():
        if names and reason in _LEFT_OUT:
            vm_names = ", ".join(map(import_rows.clean, names))
            suffix = f" and more, {skipped[reason]} in all" if skipped[reason] > MAX_NAMES else ""
            message = f"{_LEFT_OUT[reason]} are left out: {vm_names}{suffix}"
            notes.append({"code": f"left_out_{reason}", "message": message})
    return notes


class VMImports(lifecycle.Imports[VMImport]):
    """Imports of VMs."""

    model = VMImport
    refusals = (
        errors.ImportHasBadRows,
        errors.ClusterDecides,
        errors.InvalidInput,
        errors.QuotaExceeded,
    )
    recognise = staticmethod(formats.recognise)
    correct = staticmethod(corrections.correct_row)
    write = staticmethod(commit.write)
    take_back = staticmethod(commit.take_back)
    check_not_in_use = staticmethod(commit.check_not_in_use)

    def visible(self, user: Any) -> QuerySet[VMImport]:
        """Return all imports for users who see all namespaces, and a user's own imports for others."""
        imports = super().visible(user)
        return imports if user.has_perm(namespaces.EVERY_NAMESPACE) else imports.filter(user=user)

    def admit(self, row: VMImport, user: Any) -> None:
        """Limit the import to the namespaces of a user who is limited to them, who becomes its user."""
        if is_limited(user, row.target) and not row.limited:
            row.limited, row.user = True, user
            row.save(update_fields=["limited", "user"])

    def new(
        self, chosen: mapping.ImportOptions, *, author: events.Author, **values: Any
    ) -> VMImport:
        options = {
            "target": chosen.target,
            "network": chosen.network.pk if chosen.network else None,
            "namespace": chosen.namespace,
        }
        limited = chosen.user is not None and is_limited(chosen.user, chosen.target)
        row = super().new(chosen, author=author, options=options, limited=limited, **values)
        row.mapping = mapping.parse(chosen.mapping, row)
        return row

    def read_small(
        self, row: VMImport, uploads: Sequence[lifecycle.Upload]
    ) -> formats.FileReading | None:
        ((name, content),) = uploads
        reading = formats.open_file(name, content)
        row.file_name = import_rows.clean(name, 255)
        row.format, row.rows_total = reading.format, reading.total
        is_large = sum(1 for _ in islice(reading.rows(), states.SMALL + 1)) > states.SMALL
        return None if is_large else reading

    def read(
        self,
        row: VMImport,  # noqa: ARG002  # VMs come from files only
        uploads: Sequence[lifecycle.Upload],
    ) -> formats.FileReading:
        ((name, content),) = uploads
        return formats.open_file(name, content, already_counted=True)

    def store(self, row: VMImport, reading: formats.FileReading, step: lifecycle.Step) -> None:
        mapping.remember_port_groups(row)
        row.rows_total = row.rows_done = import_rows.store(row, reading.rows(), step)
        validation.validate(row)
        row.left_out = dict(reading.skipped)
        row.notes += [{"code": note.code, "message": note.message} for note in reading.notes]
        row.notes += _left_out_notes(reading.skipped)
        row.files.all().delete()
        states.mark_drafted(row, "rows_total", "rows_done", "left_out", "notes")

    def revalidate_rows(self, row: VMImport) -> None:
        validation.validate(row)
        states.mark_drafted(row)


IMPORTS = VMImports()


# --- changes of a draft ---------------------------------------------------------------------------


def change_mapping(
    import_id: int,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    user: Any = None,
    version: database.Version = None,
) -> VMImport:
    """Change the network, namespace and mapping of a draft, and resolve and validate all rows again.

    The keys of `values` are `network` (a Network or None), `namespace` and `mapping`; `mapping` is merged
    into the existing one. Raises ImportState, InvalidInput, NotAllowed, VersionMismatch.
    """
    with IMPORTS.changing(import_id, author=author, user=user) as vm_import:
        database.require_version(vm_import, version)
        vm_import.network = values.get("network", vm_import.network)
        vm_import.namespace = values.get("namespace", vm_import.namespace)
        vm_import.mapping |= mapping.parse(values.get("mapping", {}), vm_import)
        vm_import.save(update_fields=["options", "mapping"])
        mapping.remember_port_groups(vm_import)
        import_rows.reread_rows(vm_import)
        IMPORTS.revalidate_rows(vm_import)
    return IMPORTS.get(import_id)


def assign_free_addresses(
    import_id: int, number: int, *, author: events.Author, user: Any = None
) -> VMRow:
    """Assign a row the lowest free addresses that it lacks, or new ones if it lacks none.

    Raises NotFound, ImportState, NotAllowed, Conflict (the row has no network), PoolExhausted.
    """
    with IMPORTS.changing(import_id, author=author, user=user) as vm_import:
        corrections.assign_free_addresses(vm_import, number)
        row: VMRow = vm_import.rows.get(number=number)
    return row


def assign_missing_families(import_id: int, *, author: events.Author, user: Any = None) -> VMImport:
    """Assign the lowest free address of the missing family to all rows with one family on a dual-stack
    network.

    Raises ImportState, NotAllowed, PoolExhausted.
    """
    with IMPORTS.changing(import_id, author=author, user=user) as vm_import:
        corrections.assign_missing_families(vm_import)
    return IMPORTS.get(import_id)
