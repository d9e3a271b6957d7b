"""Restore what a mirror run has released, when the run is undone.

The run keeps a row of each object that it releases. The undo validates these rows as an import would, and writes
those whose addresses nobody has by then; the others stay as they are, with the reason in their row.
"""

from __future__ import annotations

from django.db.models import Count

from pools.models import RegisterImport, RegisterRow
from pools.models.register_imports import RowStatus
from pools.platform import database
from pools.platform.imports.lifecycle import Step
from pools.register.imports import commit, topology, validation
from pools.register.imports import rows as import_rows
from pools.sql import statements


def locate_rows(register_import: RegisterImport) -> list[RegisterRow]:
    """Return the rows of released objects, each with the pool that its addresses would lie in now."""
    rows = list(register_import.rows.filter(status=RowStatus.RELEASED).order_by("number"))
    topology.resolve(rows)
    return rows


def restore(register_import: RegisterImport, step: Step) -> None:
    """Restore what the run has released, in the transaction of its undo, and count what cannot be restored.

    The locks of `commit.write` are held.
    """
    rows = locate_rows(register_import)
    if not rows:
        return
    former = {row.number: row.object_id or 0 for row in rows}
    import_rows.save(rows)
    validation.validate(register_import, [row.number for row in rows])
    commit.write_rows(register_import, step)
    values = {"numbers": [*former], "objects": [*former.values()]}
    database.fetch(_FOLLOW, {"import": register_import.pk, **values})
    kept = register_import.rows.filter(number__gte=rows[0].number)
    kept.filter(status=RowStatus.NEW).update(status=RowStatus.RELEASED)
    others = kept.exclude(status=RowStatus.RELEASED).order_by().values_list("status")
    for status, number in others.annotate(number=Count("*")):
        register_import.counts[status] += number
        register_import.counts["released"] -= number


_FOLLOW = statements.read("pools/follow_restored_objects")
