"""Representations of imports and their rows."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from datetime import UTC, datetime
from typing import Any

from claims.imports import mapping, vm_status
from claims.imports import progress as import_progress
from claims.models import ImportRow, VMImport
from claims.models.imports import Status
from pools.core import block_fields

Shape = dict[str, Any]
COUNTED_STATUSES = ("new", "changed", "unchanged", "conflict", "refused")


def detail(vm_import: VMImport) -> Shape:
    """Return the full representation of an import, with its port groups and the status of its VMs."""
    status_counts = (
        vm_status.status_counts(vm_import) if vm_import.status == Status.COMMITTED else None
    )
    return brief(vm_import) | {
        "port_groups": mapping.port_groups(vm_import),
        "standing": status_counts,
    }


def brief(vm_import: VMImport) -> Shape:
    return {
        "id": vm_import.pk,
        "format": vm_import.format,
        "status": vm_import.status,
        "counts": dict.fromkeys(COUNTED_STATUSES, 0) | vm_import.counts,
        "target": vm_import.target,
        "cluster": vm_import.cluster.name,
        "network": vm_import.network_id,
        "namespace": vm_import.namespace,
        "mapping": vm_import.mapping,
        "file": vm_import.file_name,
        "rows": vm_import.rows_total,
        "progress": progress(vm_import),
        "left_out": vm_import.left_out,
        "notes": vm_import.notes,
        "error": {"code": vm_import.error_code, "message": vm_import.error}
        if vm_import.error_code
        else None,
        "skip_bad": vm_import.skip_bad,
        "created_by": vm_import.actor,
        "created_at": block_fields.format_time(vm_import.created_at),
        "drafted_at": block_fields.format_time(vm_import.drafted_at),
        "committed_at": block_fields.format_time(vm_import.committed_at),
        "undone_at": block_fields.format_time(vm_import.undone_at),
    }


def progress(vm_import: VMImport) -> Shape:
    """Return processed and total rows, per cent, and the estimated seconds for the rest."""
    current_progress = import_progress.import_progress(vm_import, datetime.now(UTC))
    return {
        "done": current_progress.done,
        "total": current_progress.total,
        "percent": current_progress.percent,
        "remaining_seconds": current_progress.remaining,
    }


def rows(vm_import: VMImport, import_rows: Sequence[ImportRow]) -> list[Shape]:
    """Return the representations of rows; those of a committed import have the status of their VM."""
    statuses: dict[int, str] = {}
    if vm_import.status == Status.COMMITTED:
        statuses = vm_status.row_statuses(vm_import, [row.number for row in import_rows])
    return [_row(row, statuses) for row in import_rows]


def _row(row: ImportRow, statuses: dict[int, str]) -> Shape:
    return {
        "number": row.number,
        "row": row.row,
        "sheet": row.sheet,
        "vm": row.vm or row.source_vm,
        "source_vm": row.source_vm,
        "mac": row.mac or row.source_mac,
        "ips": list(_first_nonempty(row.ips, row.source_ips)),
        "namespace": row.namespace or row.source_namespace,
        "port_group": row.port_group,
        "network": row.network_id,
        "note": row.note,
        "verdict": row.verdict,
        "reasons": row.reasons,
        "before": row.before,
        "corrected": row.corrected,
        "entry": row.entry_id,
        "claim": row.claim_id,
        "standing": statuses.get(row.number),
    }


def _first_nonempty(resolved: Collection[str], source: Collection[str]) -> Collection[str]:
    return resolved or source
