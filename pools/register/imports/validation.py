"""Validation of an import's rows against the current register, by set-based statements.

New: the register has nothing there. Changed: it has the same object, with another description, organization or
detail. Unchanged: it has all of it. Conflict: it has something else there. Refused: the row itself cannot be
imported.
"""

from __future__ import annotations

from collections.abc import Collection

from pools.models import RegisterImport
from pools.platform import database
from pools.sql import statements

_FEW = 200  # rows up to which the planner chooses the join method


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


_VALIDATE = statements.read("pools/validate_register_rows")
_REFUSE = statements.read("pools/refuse_register_rows")
