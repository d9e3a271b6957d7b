"""A committed import: its Kubernetes manifests, and the status of its VMs on their way into the cluster.

`provisioned`: registered, not yet in the cluster; `seen`: the VM exists and does not run on the network;
`running`: it runs with the registered values; `differing`: it runs with other values; `gone`: the entry or
claim was deleted. As in claims/sql/workload_comparison.sql, unknown values of a workload differ from nothing. The
statements use indexes only, so that the cost of a page does not grow with the register.
"""

from collections.abc import Collection, Iterator
from typing import Any

from claims.access import namespaces
from claims.entries import ippools
from claims.ipamclaims import ipamclaims
from claims.models import Entry, IPAMClaim, IPPool, VMImport
from claims.models.imports import ImportTarget
from pools.platform import database, documents
from pools.sql import statements


def render_yaml(vm_import: VMImport, scope: namespaces.Scope = namespaces.EVERYTHING) -> str:
    """Return the import's complete IPPools, or its IPAMClaims without status, as YAML."""
    return "---\n".join(
        documents.dump_yaml(manifest) for manifest in import_manifests(vm_import, scope)
    )


def import_manifests(
    vm_import: VMImport, scope: namespaces.Scope = namespaces.EVERYTHING
) -> Iterator[dict[str, Any]]:
    """Yield the manifests, with the entries and claims of the scope only."""
    ids = vm_import.rows.values("object_id")
    if vm_import.target == ImportTarget.IPPOOL:
        ippool_ids = Entry.objects.filter(pk__in=ids).values("ippool_id")
        for ippool in (
            IPPool.objects.filter(pk__in=ippool_ids).select_related("network").order_by("pk")
        ):
            visible = namespaces.visible(Entry.objects.all(), scope)
            yield ippools.manifest(ippool, rows=visible, status=False)
        return
    claims = namespaces.visible(IPAMClaim.objects.filter(pk__in=ids), scope)
    for claim in claims.select_related("network", "cluster").order_by("pk"):
        manifest = ipamclaims.manifest(claim)
        manifest.pop("status", None)
        yield manifest


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
