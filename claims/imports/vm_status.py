"""Status of the VMs of a committed import, on their way into the cluster.

`provisioned`: registered, not yet in the cluster; `seen`: the VM exists and does not run on the network;
`running`: it runs with the registered values; `differing`: it runs with other values; `gone`: the entry or
claim was deleted. As in claims/sql/workload_comparison.sql, unknown values of a workload differ from nothing. The
statements use indexes only, so that the cost of a page does not grow with the register.
"""

from __future__ import annotations

from collections.abc import Collection

from claims.models import VMImport
from pools.platform import database
from pools.sql import statements

PROVISIONED, SEEN, RUNNING, DIFFERING, GONE = STATUSES = (
    "provisioned",
    "seen",
    "running",
    "differing",
    "gone",
)


def row_statuses(vm_import: VMImport, numbers: Collection[int]) -> dict[int, str]:
    """Return the status of the VM by row number, for committed rows."""
    values = {"import": vm_import.pk, "numbers": database.join_values(numbers), "all_rows": False}
    return dict(database.rows(_STATUSES, values, prepare=False))


def status_counts(vm_import: VMImport) -> dict[str, int]:
    """Return the number of rows by status of their VM."""
    values = {"import": vm_import.pk, "numbers": "", "all_rows": True}
    rows_by_status = dict(database.rows(_COUNTS, values, prepare=False))
    return {status: rows_by_status.get(status, 0) for status in STATUSES}


_STATUSES = statements.read("claims/vm_status")
_COUNTS = f"SELECT status, count(*) FROM ({_STATUSES}) s GROUP BY status"  # noqa: S608
