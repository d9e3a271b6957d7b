"""Validation of an import's rows against the current register, by set-based statements.

New: the register has nothing there. Changed: it has the same object, with another description, organization or
detail. Unchanged: it has all of it. Conflict: it has something else there. Invalid: the row itself cannot be
imported.
"""

from __future__ import annotations

from collections.abc import Collection

from pools.models import RegisterImport
from pools.platform.imports import rows
from pools.sql import statements


def validate(register_import: RegisterImport, numbers: Collection[int] | None = None) -> None:
    """Update the status of all rows; with `numbers`, compare only these rows with the register."""
    values = {
        "holder_kind": register_import.holder_kind,
        "source": register_import.netbox_source_id,
    }
    rows.compare(register_import, _VALIDATE, numbers, values)


_VALIDATE = statements.read("pools/validate_register_rows")
