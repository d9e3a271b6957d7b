"""What became of the VMs that an import wrote: where each stands on its way into the cluster.

`provisioned`: the register has it, the cluster not yet; `seen`: the VM is there and does not run on the
network; `running`: it runs with what is registered; `differing`: it runs with something else; `gone`: the
entry or claim is no more. What a workload does not tell contradicts nothing, as with the verdicts of
claims/sql/verdicts.sql. By indexes alone, so that a page costs the same in a register of any size.
"""

from __future__ import annotations

from collections.abc import Collection

from claims.models import VMImport
from pools.platform import database
from pools.sql import statements

PROVISIONED, SEEN, RUNNING, DIFFERING, GONE = STATUSES = (
    "provisioned", "seen", "running", "differing", "gone"
)  # fmt: skip


def row_statuses(vm_import: VMImport, numbers: Collection[int]) -> dict[int, str]:
    """By the numbers of the rows that were written."""
    values = {"import": vm_import.pk, "numbers": database.joined(numbers), "every": False}
    return dict(database.rows(_STATUSES, values, prepare=False))


def status_counts(vm_import: VMImport) -> dict[str, int]:
    """How many rows stand where."""
    values = {"import": vm_import.pk, "numbers": "", "every": True}
    rows_by_status = dict(database.rows(_COUNTS, values, prepare=False))
    return {status: rows_by_status.get(status, 0) for status in STATUSES}


_STATUSES = statements.read("claims/vm_status")
_COUNTS = f"SELECT status, count(*) FROM ({_STATUSES}) s GROUP BY status"  # noqa: S608
