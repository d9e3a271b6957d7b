"""Imports of VMs: a file, list or form becomes a stored draft, which users correct and commit.

Beside it: uploads of imports; a large one is stored for a worker.

pools/platform/imports/lifecycle.py has what all imports share.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO

from django.db.models import QuerySet

from claims.access import namespaces
from claims.core.vm_import.vm_interface import MAX_NAMES, Skipped, VMInterface
from claims.imports import commit, corrections, mapping, undo, validation
from claims.imports import rows as import_rows
from claims.imports.files import formats
from claims.models import VMImport, VMRow
from claims.models.imports import ImportTarget
from pools.core import errors
from pools.platform import database, events
from pools.platform.imports import lifecycle, states


@dataclass(frozen=True)
class Upload:
    """An upload; its `kind` is `file` (a stream), `text` (pasted) or `rows` (a JSON list)."""

    kind: str
    content: Any
    name: str = ""

    def open(self, *, already_counted: bool = False) -> formats.FileReading:
        """Open the upload for reading. Raises InvalidInput.

        `already_counted` skips counting the rows, which the first opening has done.
        """
        if self.kind == "rows":
            return formats.from_rows(self.content)
        if self.kind == "text":
            return formats.from_text(self.content)
        stream: BinaryIO = self.content
        stream.seek(0)
        return formats.open_file(self.name, stream, already_counted=already_counted)

    def to_bytes(self) -> bytes:
        """Return the content as bytes, as it is stored."""
        if self.kind == "rows":
            return json.dumps(self.content).encode()
        if self.kind == "text":
            return str(self.content).encode()
        self.content.seek(0)
        content: bytes = self.content.read()
        return content


def store(upload: Upload, vm_import: VMImport) -> None:
    """Store the upload for a worker; it is deleted when its rows are stored."""
    database.rows(_KEEP, [vm_import.pk, upload.kind, upload.to_bytes()], prepare=False)


# Bytes are sent in binary: as text they would take twice the size.
_KEEP = """
    INSERT INTO pools_importfile (source_import_id, name, kind, content) VALUES (%s, '', %s, %b)
    RETURNING id
"""


def load(vm_import: VMImport) -> Upload:
    """Return the stored upload of an import."""
    file, name = vm_import.files.get(), vm_import.file_name
    content = bytes(file.content)
    if file.kind == "rows":
        return Upload("rows", json.loads(content))
    if file.kind == "text":
        return Upload("text", content.decode())
    return Upload("file", io.BytesIO(content), name)


# Characters of MAC addresses, and of lists of addresses as PostgreSQL writes them.


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
    take_back = staticmethod(undo.take_back)
    check_not_in_use = staticmethod(undo.check_not_in_use)

    def visible(self, user: Any) -> QuerySet[VMImport]:
        """Return all imports for users who see all namespaces, and a user's own imports for others."""
        imports = super().visible(user)
        return imports if user.has_perm(namespaces.EVERY_NAMESPACE) else imports.filter(user=user)

    def admit(self, row: VMImport, user: Any) -> None:
        """Limit the import to the namespaces of a user who is limited to them, who becomes its user."""
        if is_limited(user, row.target) and not row.limited:
            row.limited, row.user = True, user
            row.save(update_fields=["limited", "user"])

    def read(self, row: VMImport) -> formats.FileReading:
        return load(row).open(already_counted=True)

    def store(self, row: VMImport, reading: formats.FileReading, step: lifecycle.Step) -> None:
        self.store_rows(row, reading.rows(), reading, step)

    def store_rows(
        self,
        row: VMImport,
        rows: Iterable[VMInterface],
        reading: formats.FileReading,
        step: lifecycle.Step,
    ) -> None:
        """Store rows of a reading, of which the first may have been read already."""
        row.rows_total = row.rows_done = import_rows.store(row, rows, step)
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


def create(upload: Upload, options: mapping.ImportOptions, *, author: events.Author) -> VMImport:
    """Create an import: a small upload becomes a draft, a large one waits for a worker.

    With `options.commit` a small import is committed at once. If it has bad rows it stays a draft with
    the error. Raises InvalidInput for an unreadable upload; then no import is created.
    """
    reading = upload.open()
    rows = reading.rows()
    first_rows = list(islice(rows, states.SMALL + 1))
    vm_import = _new_import(upload, options, reading, author)
    if len(first_rows) > states.SMALL:
        with events.recorded_by(author):
            vm_import.rows_total = reading.total
            vm_import.save()
            store(upload, vm_import)
            mapping.remember_port_groups(vm_import, options)
        return vm_import
    with events.recorded_by(author):
        vm_import.save()
        mapping.remember_port_groups(vm_import, options)
        IMPORTS.store_rows(vm_import, first_rows, reading, lifecycle.ignore_progress)
    return IMPORTS.commit_if_wanted(vm_import, author=author)


def _new_import(
    upload: Upload,
    options: mapping.ImportOptions,
    reading: formats.FileReading,
    author: events.Author,
) -> VMImport:
    return IMPORTS.new(
        options,
        author=author,
        mapping=mapping.parse(options),
        options={
            "target": options.target,
            "network": options.network.pk if options.network else None,
            "namespace": options.namespace,
        },
        format=reading.format,
        file_name=import_rows.clean(upload.name, 255),
        limited=options.limited,
    )


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
        options = mapping.ImportOptions(
            vm_import.cluster,
            mapping=values.get("mapping", {}),
            user=vm_import.user,
            limited=vm_import.limited,
        )
        vm_import.mapping = vm_import.mapping | mapping.parse(options)
        vm_import.save(update_fields=["options", "mapping"])
        mapping.remember_port_groups(vm_import, options)
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
