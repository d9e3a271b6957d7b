"""What became of the VMs that an import wrote: where each stands on its way into the cluster.

`provisioned`: the register has it, the cluster not yet; `seen`: the VM is there and does not run on the
network; `running`: it runs with what is registered; `differing`: it runs with something else; `gone`: the
entry or claim is no more. What a workload does not tell contradicts nothing, as with the verdicts of
claims/sql/workload_comparison.sql. By indexes alone, so that a page costs the same in a register of any size.
"""

from __future__ import annotations

from collections.abc import Collection

from claims.models import VMImport
from pools.platform import database
from pools.sql import statements

PROVISIONED, SEEN, RUNNING, DIFFERING, GONE = STANDINGS = (
    "provisioned", "seen", "running", "differing", "gone"
)  # fmt: skip


def of_rows(vm_import: VMImport, numbers: Collection[int]) -> dict[int, str]:
    """By the numbers of the rows that were written."""
    values = {"import": vm_import.pk, "numbers": database.joined(numbers), "every": False}
    return dict(database.rows(_STANDING, values, prepare=False))


def counts(vm_import: VMImport) -> dict[str, int]:
    """How many rows stand where."""
    values = {"import": vm_import.pk, "numbers": "", "every": True}
    rows_by_status = dict(database.rows(_COUNTS, values, prepare=False))
    return {standing: rows_by_status.get(standing, 0) for standing in STANDINGS}


_STANDING = statements.read("claims/vm_status")
_COUNTS = f"SELECT standing, count(*) FROM ({_STANDING}) s GROUP BY standing"  # noqa: S608
