"""Validation of an import's rows against the current register, by set-based statements.

New: the register has nothing there. Changed: it has the same object, with another description, organization or
detail. Unchanged: it has all of it. Conflict: it has something else there. Refused: the row itself cannot be
imported.
"""

from __future__ import annotations

from collections.abc import Collection

from pools.models import RegisterImport
from pools.models.register_imports import RegisterRowStatus
from pools.platform import database
from pools.sql import statements

_FEW = 200  # rows up to which the planner chooses the join method
COUNTED = ("new", "changed", "unchanged", "conflict", "refused")


def validate(register_import: RegisterImport, numbers: Collection[int] | None = None) -> None:
    """Update the status of all rows; with `numbers`, compare only these rows with the register."""
    values = {
        "import": register_import.pk,
        "all_rows": numbers is None,
        "numbers": list(numbers or ()),
        "holder_kind": register_import.holder_kind,
        "source": register_import.netbox_source_id,
    }
    with database.hash_joins_only(many=numbers is None or len(numbers) > _FEW):
        database.fetch(_VALIDATE, values)
        database.fetch(_REFUSE, {"import": register_import.pk})


def count_rows(register_import: RegisterImport) -> dict[str, int]:
    """Return the number of rows by status; `skipped` is a key only if rows are skipped."""
    rows_by_status = dict(database.rows(_COUNT, [register_import.pk]))
    counts = {status: rows_by_status.get(status, 0) for status in COUNTED}
    if skipped := rows_by_status.get(RegisterRowStatus.SKIPPED.value):
        counts["skipped"] = skipped
    return counts


_COUNT = """
    SELECT status, count(*) FROM pools_registerrow WHERE register_import_id = %s GROUP BY status
"""
_VALIDATE = statements.read("pools/validate_register_rows")
_REFUSE = statements.read("pools/refuse_register_rows")
