"""A draft is written: entries of IPPools or IPAMClaims, in one transaction, with few statements.

All locks are taken first, in the order of every other writer (the cluster's row, IPPools, pools); then
the rows are judged once more, so that what is written is what is true now. What is there already is left
alone: the same file again changes nothing.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from claims.address_index import index
from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.imports import validation
from claims.ipamclaims import ingest
from claims.models import Entry, ImportRow, IPAMClaim, IPPool, Network, VMImport
from claims.models.imports import RowVerdict, Target
from claims.models.ippools import Source
from pools.clusters.reconcile import leases
from pools.core import errors
from pools.platform import database, events

BATCH = 10_000
_WRITTEN = (RowVerdict.NEW, RowVerdict.CHANGED)
_BAD = (RowVerdict.CONFLICT, RowVerdict.REFUSED)

Step = Callable[[int], None]


def import_author(of: VMImport, author: events.Author) -> events.Author:
    """Events of what an import writes name the import."""
    return dataclasses.replace(author, reason=f"import {of.pk}")


def write(of: VMImport, *, author: events.Author, step: Step) -> dict[str, int]:
    """Write what is new and what changed; the counts by verdict. `step` is told how many rows are done.

    Stands in a transaction of the caller. Raises ImportHasBadRows unless `of.skip_bad`, ClusterDecides.
    """
    named = import_author(of, author)
    with events.recorded(named):
        networks = list(_networks(of))
        ippools_ = _hold(of, networks, named)
        validation.judge(of)
        counts = validation.count(of)
        bad = sum(counts[verdict] for verdict in _BAD)
        if bad and not of.skip_bad:
            raise bad_rows(counts)
        done = sum(counts.values()) - sum(counts[verdict] for verdict in _WRITTEN)
        step(done)
        for network in networks:
            for batch in _batches(of, network):
                if of.target == Target.IPAMCLAIMS:
                    _write_claims(of, network, batch)
                else:
                    _write_entries(of, ippools_[network.pk], batch, named)
                done += len(batch)
                step(done)
    return counts


def bad_rows(counts: dict[str, int]) -> errors.ImportHasBadRows:
    error = errors.ImportHasBadRows(
        f"Rows in conflict: {counts['conflict']}, refused: {counts['refused']}. Correct or skip them,"
        " or import all but these (skip_bad)."
    )
    error.extra = {"counts": counts}  # type: ignore[attr-defined]  # read by ipam_site.http.problems
    return error


def _networks(of: VMImport) -> Iterator[Network]:
    """In the order of their IPPools; those without one last."""
    rows = ImportRow.objects.filter(vm_import=of, verdict__in=_WRITTEN).order_by()
    ids = rows.values_list("network_id", flat=True).distinct()
    found = Network.objects.filter(pk__in=list(ids)).select_related("cluster", "ippool")
    return iter(found.order_by("ippool__pk", "pk"))


def _hold(of: VMImport, networks: Sequence[Network], author: events.Author) -> dict[int, int]:
    """Take the locks; the IPPools by their networks, made where there were none."""
    leases.nudge(of.cluster_id, patient=True)
    found: dict[int, int] = {}
    if of.target == Target.IPPOOL:
        known = IPPool.objects.filter(network__in=networks).select_for_update().order_by("pk")
        found = {ippool.network_id: ippool.pk for ippool in known}
        for network in networks:
            if network.pk not in found:
                name = ippool_name(network)
                made = ippools.create(network.cluster, name, network.name, author=author)
                found[network.pk] = made.pk
    ingest.lock(network.pk for network in networks)
    return found


def ippool_name(network: Network) -> str:
    """A name that an object may have, and that no IPPool of the cluster has."""
    words = re.sub("[^a-z0-9.-]+", "-", (network.object_name or network.name).lower())
    name = words.strip(".-")[:200] or "network"
    taken = IPPool.objects.filter(cluster=network.cluster_id, name=name).exists()
    return f"{name}-{network.pk}" if taken else name


def _batches(of: VMImport, network: Network) -> Iterator[list[ImportRow]]:
    last = 0
    rows = ImportRow.objects.filter(vm_import=of, network=network, verdict__in=_WRITTEN)
    rows = rows.only(
        "number", "vm", "namespace", "mac", "ips", "note", "claim_name", "verdict", "entry_id",
        "claim_id",
    )  # fmt: skip
    while batch := list(rows.filter(number__gt=last).order_by("number")[:BATCH]):
        last = batch[-1].number
        yield batch


def _told(of: VMImport, batch: Sequence[ImportRow], column: str, ids: Sequence[int | None]) -> None:
    values = {
        "import": of.pk,
        "numbers": ",".join(str(row.number) for row in batch),
        "ids": database.joined(ids),
    }
    database.fetch(_TOLD.format(column=column), values)


_TOLD = """
    UPDATE claims_importrow r SET written = true, {column} = w.id
    FROM unnest(string_to_array(%(numbers)s, ',')::int[], string_to_array(%(ids)s, ',')::bigint[])
        AS w(number, id)
    WHERE r.vm_import_id = %(import)s AND r.number = w.number RETURNING 1
"""


# --- entries --------------------------------------------------------------------------------------


def _write_entries(
    of: VMImport, ippool_id: int, batch: Sequence[ImportRow], author: events.Author
) -> None:
    known = Entry.objects.in_bulk([row.entry_id for row in batch if row.entry_id])
    changed = [_changed_entry(known[row.entry_id], row) for row in batch if row.entry_id in known]
    if changed:
        ippool = IPPool.objects.get(pk=ippool_id)
        entries.bring(ippool, entries.Difference(changed=changed), {}, author=author)
    new = [row for row in batch if row.entry_id not in known]
    source = Source.REQUEST if of.limited else Source.IMPORT
    made = entries.add(ippool_id, [_spec(row) for row in new], source=source, author=author) if new else []
    ids = {row.number: entry.pk for row, entry in zip(new, made, strict=True)}
    _told(of, batch, "entry_id", [ids.get(row.number, row.entry_id) for row in batch])


def _spec(row: ImportRow) -> EntrySpec:
    return EntrySpec(row.mac or "", tuple(row.ips), row.vm, row.namespace, row.note)


def _changed_entry(entry: Entry, row: ImportRow) -> entries.Known:
    """What the row does not say stays."""
    return entries.Known(
        entry.pk,
        entry.mac or "",
        tuple(row.ips),
        row.vm or entry.vm,
        row.namespace or entry.namespace,
        row.note or entry.note,
    )


# --- claims ---------------------------------------------------------------------------------------


def _write_claims(of: VMImport, network: Network, batch: Sequence[ImportRow]) -> None:
    known = IPAMClaim.objects.in_bulk([row.claim_id for row in batch if row.claim_id])
    changed = [_changed_claim(known[row.claim_id], row) for row in batch if row.claim_id in known]
    new = [row for row in batch if row.claim_id not in known]
    made = _insert(of, network, new) if new else []
    if changed:
        update_claims(changed)
    index.write(claims=[*changed, *made])
    ids = {row.number: claim.pk for row, claim in zip(new, made, strict=True)}
    _told(of, batch, "claim_id", [ids.get(row.number, row.claim_id) for row in batch])


def _changed_claim(claim: IPAMClaim, row: ImportRow) -> IPAMClaim:
    claim.mac = row.mac or claim.mac
    claim.ips_requested = list(row.ips) or claim.ips_requested
    claim.note = row.note or claim.note
    return claim


def update_claims(rows: Sequence[IPAMClaim]) -> None:
    """Store what claims request."""
    names = ("mac", "ips_requested", "note")
    values = [{"id": row.pk, **{name: getattr(row, name) for name in names}} for row in rows]
    database.fetch(_UPDATE, {"rows": json.dumps(values)})


_UPDATE = """
    UPDATE claims_ipamclaim c SET mac = w.mac, ips_requested = w.ips_requested, note = w.note
    FROM jsonb_to_recordset(%(rows)s::jsonb)
        AS w(id bigint, mac macaddr, ips_requested varchar[], note text)
    WHERE c.id = w.id RETURNING c.id
"""


def _insert(of: VMImport, network: Network, rows: Sequence[ImportRow]) -> list[IPAMClaim]:
    now = database.now()
    ids = database.fetch(_NUMBERS, {"count": len(rows)})
    made = [
        IPAMClaim(
            pk=number["id"],
            cluster_id=of.cluster_id,
            network=network,
            namespace=row.namespace,
            name=row.claim_name,
            mac=row.mac,
            ips_requested=list(row.ips),
            vm=row.vm,
            note=row.note,
            created_at=now,
        )
        for number, row in zip(ids, rows, strict=True)
    ]
    database.copy("claims_ipamclaim", _COLUMNS, map(_values, made))
    return made


_NUMBERS = """
    SELECT nextval(pg_get_serial_sequence('claims_ipamclaim', 'id')) AS id
    FROM generate_series(1, %(count)s)
"""
_COLUMNS = (
    "id", "cluster_id", "network_id", "namespace", "name", "interface", "mac", "ips_requested",
    "vm", "vm_uid", "ips", "owner_pod", "conditions", "finalizers", "uid", "follows_cluster",
    "note", "created_at",
)  # fmt: skip


def _values(claim: IPAMClaim) -> tuple[Any, ...]:
    return tuple("[]" if name == "conditions" else getattr(claim, name) for name in _COLUMNS)
