"""How imports and their rows are answered."""

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
COUNTED = ("new", "changed", "unchanged", "conflict", "refused")


def one(of: VMImport) -> Shape:
    """An import with what is worked out for one alone."""
    standing = vm_status.counts(of) if of.status == Status.COMMITTED else None
    return brief(of) | {"port_groups": mapping.port_groups(of), "standing": standing}


def brief(of: VMImport) -> Shape:
    return {
        "id": of.pk,
        "format": of.format,
        "status": of.status,
        "counts": dict.fromkeys(COUNTED, 0) | of.counts,
        "target": of.target,
        "cluster": of.cluster.name,
        "network": of.network_id,
        "namespace": of.namespace,
        "mapping": of.mapping,
        "file": of.file_name,
        "rows": of.rows_total,
        "progress": progress(of),
        "left_out": of.left_out,
        "notes": of.notes,
        "error": {"code": of.error_code, "message": of.error} if of.error_code else None,
        "skip_bad": of.skip_bad,
        "created_by": of.actor,
        "created_at": block_fields.time(of.created_at),
        "drafted_at": block_fields.time(of.drafted_at),
        "committed_at": block_fields.time(of.committed_at),
        "undone_at": block_fields.time(of.undone_at),
    }


def progress(of: VMImport) -> Shape:
    """Rows done and in all, per cent, and the seconds that the rest will take at this pace."""
    found = import_progress.for_import(of, datetime.now(UTC))
    return {
        "done": found.done,
        "total": found.total,
        "percent": found.percent,
        "remaining_seconds": found.remaining,
    }


def rows(of: VMImport, found: Sequence[ImportRow]) -> list[Shape]:
    """Rows of one page; where each VM stands once they are written."""
    standing: dict[int, str] = {}
    if of.status == Status.COMMITTED:
        standing = vm_status.of_rows(of, [row.number for row in found])
    return [_row(row, standing) for row in found]


def _row(row: ImportRow, standing: dict[int, str]) -> Shape:
    return {
        "number": row.number,
        "row": row.row,
        "sheet": row.sheet,
        "vm": row.vm or row.source_vm,
        "source_vm": row.source_vm,
        "mac": row.mac or row.source_mac,
        "ips": list(_either(row.ips, row.source_ips)),
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
        "standing": standing.get(row.number),
    }


def _either(made: Collection[str], source: Collection[str]) -> Collection[str]:
    return made or source
