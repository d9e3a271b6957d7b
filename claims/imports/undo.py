"""Undo a committed import: delete what it created, and restore what it changed.

The undo is refused as a whole if a running workload, a granted claim or an object in the cluster uses
what the import wrote, or if a user has changed it since.
"""

from __future__ import annotations

from collections.abc import Sequence

from claims.address_index import index
from claims.entries import entries
from claims.imports import commit, left_out
from claims.ipamclaims import ingest
from claims.models import Entry, IPAMClaim, IPPool, VMImport, VMRow
from claims.models.imports import ImportTarget
from pools.clusters.reconcile import leases
from pools.models.imports import RowStatus
from pools.platform import database, events
from pools.platform.imports import rows as stored_rows
from pools.platform.imports import states
from pools.platform.imports.lifecycle import Step
from pools.sql import statements

BATCH = 10_000


def take_back(vm_import: VMImport, *, author: events.Author, step: Step) -> None:
    """Undo an import in the caller's transaction; `step` is called with the number of rows done.

    Raises ImportInUse, ClusterDecides.
    """
    leases.nudge(vm_import.cluster_id, patient=True)
    rows = vm_import.rows.filter(written=True)
    networks = list(rows.order_by().values_list("values__network", flat=True).distinct())
    locked_ippools = IPPool.objects.filter(network__in=networks).select_for_update().order_by("pk")
    ippools = {ippool.pk: ippool for ippool in locked_ippools}
    ingest.lock_pools(pk for pk in networks if pk)
    check_not_in_use(vm_import)
    rows_done = 0
    for batch in stored_rows.in_batches(rows, BATCH):
        if vm_import.target == ImportTarget.IPPOOL:
            _undo_entries(ippools, batch, author)
        else:
            _undo_claims(batch)
        rows_done += len(batch)
        step(rows_done)
    left_out.end(vm_import)


def _undo_entries(
    ippools: dict[int, IPPool], batch: Sequence[VMRow], author: events.Author
) -> None:
    entries_by_id = Entry.objects.in_bulk([row.object_id for row in batch])
    deleted_ids: list[int] = []
    changed: dict[int, list[entries.EntryRow]] = {}
    for row in batch:
        entry = entries_by_id.get(row.object_id)
        if entry is None:
            continue  # already deleted
        if row.status == RowStatus.NEW:
            deleted_ids.append(entry.pk)
        elif row.before:
            previous = entries.EntryRow(
                entry.pk,
                entry.mac or "",
                tuple(row.before["ips"]),
                *(row.before[name] for name in ("vm", "namespace", "note")),
            )
            changed.setdefault(entry.ippool_id, []).append(previous)
    entries.delete(deleted_ids, author=author)
    for pk, changed_rows in changed.items():
        entries.apply_diff(ippools[pk], entries.EntryDiff(changed=changed_rows), {}, author=author)


def _undo_claims(batch: Sequence[VMRow]) -> None:
    claims_by_id = IPAMClaim.objects.in_bulk([row.object_id for row in batch])
    deleted_claims, changed = [], []
    for row in batch:
        claim = claims_by_id.get(row.object_id)
        if claim is None:
            continue
        if row.status == RowStatus.NEW:
            deleted_claims.append(claim)
        elif row.before:
            claim.mac, claim.ips_requested = row.before["mac"], row.before["ips"]
            claim.note = row.before["note"]
            changed.append(claim)
    ingest.delete(deleted_claims)
    if changed:
        ingest.store(changed, *commit.CHANGED_COLUMNS)
        index.write(claims=changed)


def check_not_in_use(vm_import: VMImport) -> None:
    """Raise ImportInUse with the first rows that are in use."""
    used_rows = database.rows(_USED, {"import": vm_import.pk}, prepare=False)
    states.check_unused([f"row {line}: {why}" for line, why in used_rows])


_USED = statements.read("claims/import_rows_in_use")
