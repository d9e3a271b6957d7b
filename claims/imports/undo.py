"""An import is undone: what it made goes, what it changed is what it was before.

Refused as a whole when anything uses what it wrote: a running workload, a claim that was granted, an
object in the cluster; or when somebody has changed it since.
"""

from __future__ import annotations

from collections.abc import Sequence

from claims.address_index import index
from claims.entries import entries
from claims.imports import commit
from claims.ipamclaims import ingest
from claims.models import Entry, ImportRow, IPAMClaim, IPPool, VMImport
from claims.models.imports import ImportTarget, RowVerdict
from pools.clusters.reconcile import leases
from pools.core import errors
from pools.platform import database, events

BATCH = 10_000
_SHOWN = 5


def undo(vm_import: VMImport, *, author: events.Author, step: commit.Step) -> None:
    """Stands in a transaction of the caller; `step` is told how many rows are done. Raises ImportInUse, ClusterDecides."""
    import_author = commit.import_author(vm_import, author)
    with events.recorded(import_author):
        leases.nudge(vm_import.cluster_id, patient=True)
        rows = ImportRow.objects.filter(vm_import=vm_import, written=True)
        networks = list(rows.order_by().values_list("network_id", flat=True).distinct())
        held = IPPool.objects.filter(network__in=networks).select_for_update().order_by("pk")
        ippools = {ippool.pk: ippool for ippool in held}
        ingest.lock(pk for pk in networks if pk)
        refuse_used(vm_import)
        last = done = 0
        while batch := list(rows.filter(number__gt=last).order_by("number")[:BATCH]):
            last = batch[-1].number
            if vm_import.target == ImportTarget.IPPOOL:
                _undo_entries(ippools, batch, import_author)
            else:
                _undo_claims(batch)
            done += len(batch)
            step(done)
        rows.update(written=False)


def _undo_entries(
    ippools: dict[int, IPPool], batch: Sequence[ImportRow], author: events.Author
) -> None:
    entries_by_id = Entry.objects.in_bulk([row.entry_id for row in batch])
    gone: list[int] = []
    changed: dict[int, list[entries.EntryRow]] = {}
    for row in batch:
        entry = entries_by_id.get(row.entry_id)
        if entry is None:
            continue  # somebody deleted it, which is what is wanted
        if row.verdict == RowVerdict.NEW:
            gone.append(entry.pk)
        elif row.before:
            was = entries.EntryRow(
                entry.pk,
                entry.mac or "",
                tuple(row.before["ips"]),
                *(row.before[name] for name in ("vm", "namespace", "note")),
            )
            changed.setdefault(entry.ippool_id, []).append(was)
    entries.delete(gone, author=author)
    for pk, those in changed.items():
        entries.apply_diff(ippools[pk], entries.EntryDiff(changed=those), {}, author=author)


def _undo_claims(batch: Sequence[ImportRow]) -> None:
    claims_by_id = IPAMClaim.objects.in_bulk([row.claim_id for row in batch])
    gone, changed = [], []
    for row in batch:
        claim = claims_by_id.get(row.claim_id)
        if claim is None:
            continue
        if row.verdict == RowVerdict.NEW:
            gone.append(claim)
        elif row.before:
            claim.mac, claim.ips_requested = row.before["mac"], row.before["ips"]
            claim.note = row.before["note"]
            changed.append(claim)
    ingest.delete(gone)
    if changed:
        commit.update_claims(changed)
        index.write(claims=changed)


def refuse_used(vm_import: VMImport) -> None:
    """Raises ImportInUse, naming the first rows."""
    used_rows = database.rows(_USED, {"import": vm_import.pk}, prepare=False)
    if used_rows:
        shown = "; ".join(f"row {line}: {why}" for line, why in used_rows[:_SHOWN])
        more = f"; and {len(used_rows) - _SHOWN} more" if len(used_rows) > _SHOWN else ""
        raise errors.ImportInUse(f"It cannot be undone: {shown}{more}.")


_USED = """
    WITH r AS MATERIALIZED (
        SELECT number, "row" AS line, network_id, mac, ips, vm, namespace, note, verdict, before,
            entry_id, claim_id
        FROM claims_importrow WHERE vm_import_id = %(import)s AND written),
    used AS (
        SELECT r.number, r.line, 'somebody changed the entry since' AS why
        FROM r LEFT JOIN claims_entry e ON e.id = r.entry_id
        WHERE r.entry_id IS NOT NULL AND CASE WHEN e.id IS NULL THEN r.verdict = 'changed' ELSE
            (e.mac, e.ips, e.vm, e.namespace, e.note) IS DISTINCT FROM (r.mac, r.ips,
                COALESCE(NULLIF(r.vm, ''), r.before ->> 'vm', ''),
                COALESCE(NULLIF(r.namespace, ''), r.before ->> 'namespace', ''),
                COALESCE(NULLIF(r.note, ''), r.before ->> 'note', '')) END
      UNION ALL
        SELECT r.number, r.line, CASE
            WHEN c.id IS NULL THEN 'the IPAMClaim is gone'
            WHEN c.ips <> '{}' THEN 'the IPAMClaim ' || c.name || ' has its addresses'
            WHEN c.uid <> '' THEN 'the IPAMClaim ' || c.name || ' is in the cluster: delete it there'
            ELSE 'somebody changed the IPAMClaim since' END
        FROM r LEFT JOIN claims_ipamclaim c ON c.id = r.claim_id
        WHERE r.claim_id IS NOT NULL AND CASE WHEN c.id IS NULL THEN r.verdict = 'changed' ELSE
            c.ips <> '{}' OR c.uid <> '' AND r.verdict = 'new'
            OR c.mac IS DISTINCT FROM COALESCE(r.mac, (r.before ->> 'mac')::macaddr)
            OR r.ips <> '{}' AND c.ips_requested <> r.ips END
      UNION ALL
        SELECT r.number, r.line, 'the ' || CASE w.kind WHEN 'pod' THEN 'pod ' ELSE 'VM ' END
            || w.namespace || '/' || w.name || ' runs with it'
        FROM (SELECT *, split_part(unnest(ips), '/', 1)::inet AS address FROM r) r
        JOIN claims_place q ON q.network_id = r.network_id AND q.address = r.address
        JOIN claims_workload w ON w.id = q.workload_id
      UNION ALL
        SELECT r.number, r.line, 'the VM ' || w.namespace || '/' || w.name || ' runs with its MAC'
        FROM r JOIN claims_place q ON q.network_id = r.network_id AND q.mac = r.mac
        JOIN claims_workload w ON w.id = q.workload_id
      UNION ALL
        SELECT r.number, r.line, 'the IPAMClaim ' || c.namespace || '/' || c.name
            || ' was granted its addresses'
        FROM (SELECT *, split_part(unnest(ips), '/', 1)::inet AS address FROM r) r
        JOIN claims_place q ON q.network_id = r.network_id AND q.address = r.address AND q.holds
        JOIN claims_ipamclaim c ON c.id = q.claim_id AND c.id IS DISTINCT FROM r.claim_id)
    SELECT DISTINCT ON (number) line, why FROM used ORDER BY number, why
"""
