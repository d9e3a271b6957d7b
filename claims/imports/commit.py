"""Commit a draft: write its entries or IPAMClaims in one transaction with few statements; and undo what was written.

The commit takes all locks first, in the order of every other writer (the cluster's row, pools, IPPools).
It then validates the rows again, so that it writes by the current state of the register. It leaves
existing, equal objects alone: importing the same file twice changes nothing.

An undo deletes what the import created, and restores what it changed. It is refused as a whole if a running workload, a
granted claim or an object in the cluster uses what the import wrote, or if a user has changed it since.

The source has the addresses of rows that a commit leaves out in use, so a reserved range of each withholds it (rule
`left-out-rows-keep-their-addresses`). The ranges only note what is in use: a later import, an entry or a claim that
names the address gets it, and an import that writes it ends its range, as the undo of the import does. VM owners'
imports reserve nothing.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from ipaddress import ip_interface
from typing import Any

from django.db.models import F, Q, QuerySet

from claims.access import namespaces
from claims.address_index import block_sync, index
from claims.core.networks import kept_addresses
from claims.entries import entries, ippools
from claims.imports import matches, rows as import_rows, validation
from claims.ipamclaims import ingest, ipamclaims
from claims.models import Entry, IndexEntry, IPAMClaim, IPPool, Network, VMImport, VMRow
from claims.models.imports import ImportTarget
from claims.models.networks import EntrySource
from pools.clusters.reconcile import leases
from pools.core import errors
from pools.core.addresses import Address, AddressRange
from pools.models import Block, Pool, PoolCIDR, ReservedRange, RowStatus
from pools.platform import database, events
from pools.platform.imports import rows as stored_rows, states
from pools.platform.imports.lifecycle import Step
from pools.register import pool_cidrs
from pools.sql import statements

BATCH = 10_000
CHANGED_COLUMNS = ("mac", "ips_requested", "note")  # of claims
_WRITTEN = (RowStatus.NEW, RowStatus.CHANGED)
_LEFT_OUT = (RowStatus.CONFLICT, RowStatus.INVALID, RowStatus.LEFT_OUT)
_LONGEST_NAME = 200


def write(vm_import: VMImport, *, author: events.Author, step: Step) -> dict[str, int]:
    """Write the new and the changed rows of a draft, and return the number of rows by status.

    `step` is called with the number of rows done. Raises ImportHasBadRows (with `vm_import.skip_bad` only if rows would
    be written elsewhere than the draft says), ClusterDecides, InvalidInput network_unfit, and QuotaExceeded for an import of a VM owner.
    """
    # Of all rows: one in conflict may be new by now.
    named = vm_import.rows.order_by().values_list("values__namespace", flat=True).distinct()
    limited = [name for name in named if name] if vm_import.limited else []
    with namespaces.enforce_quota(vm_import.cluster_id, limited):
        return _write(vm_import, author=author, step=step)


def _write(vm_import: VMImport, *, author: events.Author, step: Step) -> dict[str, int]:
    leases.nudge(vm_import.cluster_id, patient=True)
    ippool_ids = _lock(_networks(vm_import.rows))
    if moved := import_rows.reread_rows(vm_import):  # networks and entries may have changed since
        message = f"Rows whose network or namespace has changed since: {moved}. Look at the draft, and commit it again."
        raise errors.ImportHasBadRows(message)
    validation.validate(vm_import)
    networks = _networks(_written_rows(vm_import))
    if vm_import.target == ImportTarget.IPAMCLAIMS:
        for network in networks:
            ipamclaims.require_fit(network)
    counts = states.count_rows(vm_import)
    states.check_rows(vm_import, counts)
    rows_done = sum(counts.values()) - sum(counts[status] for status in _WRITTEN)
    step(rows_done)
    for network in networks:
        if vm_import.target == ImportTarget.IPPOOL and network.pk not in ippool_ids:
            ippool_ids[network.pk] = _create_ippool(network, author).pk
        rows = _written_rows(vm_import).filter(values__network=network.pk)
        for batch in stored_rows.in_batches(rows, BATCH):
            _write_batch(vm_import, network, ippool_ids.get(network.pk, 0), batch, author)
            rows_done += len(batch)
            step(rows_done)
    _withhold(vm_import)
    return counts


def _write_batch(
    vm_import: VMImport,
    network: Network,
    ippool_id: int,
    batch: Sequence[VMRow],
    author: events.Author,
) -> None:
    registered = _registered(vm_import, batch)
    new = [row for row in batch if row.object_id not in registered]
    changed = [(registered[row.object_id], row) for row in batch if row.object_id in registered]
    if vm_import.target == ImportTarget.IPAMCLAIMS:
        _write_claims(network, new, changed)
    else:
        _write_entries(vm_import, ippool_id, new, changed, author)
    for row in batch:
        row.written = True
    stored_rows.save_results(batch)


def _written_rows(vm_import: VMImport) -> QuerySet[VMRow]:
    return vm_import.rows.filter(status__in=_WRITTEN).order_by()


def _networks(rows: QuerySet[VMRow]) -> list[Network]:
    """Return the networks of rows, ordered by IPPool; networks without an IPPool come last."""
    ids = rows.order_by().values_list("values__network", flat=True).distinct()
    networks = Network.objects.filter(pk__in=[pk for pk in ids if pk])
    return list(networks.select_related("cluster", "ippool").order_by("ippool__pk", "pk"))


def _lock(networks: Sequence[Network]) -> dict[int, int]:
    """Take the locks of the pools and the IPPools of networks, and return the IPPool ids by network id."""
    block_sync.lock_pools(network.pk for network in networks)
    existing_ippools = IPPool.objects.filter(network__in=networks)
    locked_ippools = existing_ippools.select_for_update().order_by("pk")
    return {ippool.network_id: ippool.pk for ippool in locked_ippools}


def _create_ippool(network: Network, author: events.Author) -> IPPool:
    """Create the IPPool of a network, or return the one that another import, or its cluster, made meanwhile."""
    try:
        return ippools.create(network.cluster, ippool_name(network), network.name, author=author)
    except errors.AlreadyExists:
        ippool = IPPool.objects.filter(network=network).select_for_update().first()
        if ippool is None:
            raise
        return ippool


def ippool_name(network: Network) -> str:
    """Return a valid object name for the network's IPPool that no IPPool of the cluster has."""
    slug = re.sub("[^a-z0-9.-]+", "-", (network.object_name or network.name).lower())
    name = slug.strip(".-")[:200] or "network"
    is_taken = IPPool.objects.filter(cluster=network.cluster_id, name=name).exists()
    return f"{name}-{network.pk}" if is_taken else name


def _registered(vm_import: VMImport, rows: Sequence[VMRow]) -> dict[int, Any]:
    """Return the entries or the claims that rows are about, by their id."""
    model: type[Any] = IPAMClaim if vm_import.target == ImportTarget.IPAMCLAIMS else Entry
    return dict(model.objects.in_bulk([row.object_id for row in rows if row.object_id]))


def _write_entries(
    vm_import: VMImport,
    ippool_id: int,
    new: Sequence[VMRow],
    changed: Sequence[tuple[Entry, VMRow]],
    author: events.Author,
) -> None:
    if changed:
        diff = entries.EntryDiff(changed=[matches.changed_entry(*pair) for pair in changed])
        entries.apply_diff(IPPool.objects.get(pk=ippool_id), diff, {}, author=author)
    if new:
        specs = [matches.spec(row) for row in new]
        source = EntrySource.REQUEST if vm_import.limited else EntrySource.IMPORT
        added = entries.add(ippool_id, specs, source=source, author=author)
        for row, entry in zip(new, added, strict=True):
            row.object_id = entry.pk


def _write_claims(
    network: Network, new: Sequence[VMRow], changed: Sequence[tuple[IPAMClaim, VMRow]]
) -> None:
    new_claims = [
        IPAMClaim(
            cluster_id=network.cluster_id,
            network=network,
            namespace=row.namespace,
            name=row.claim_name,
            mac=row.mac,
            ips_requested=list(row.ips),
            vm=row.vm,
            note=row.note,
        )
        for row in new
    ]
    IPAMClaim.objects.bulk_create(new_claims, batch_size=2_000)
    changed_claims = [matches.changed_claim(*pair) for pair in changed]
    if changed_claims:
        ingest.store(changed_claims, *CHANGED_COLUMNS)
    index.write(claims=[*changed_claims, *new_claims])
    for row, claim in zip(new, new_claims, strict=True):
        row.object_id = claim.pk


# --- undo -----------------------------------------------------------------------------------------


def take_back(vm_import: VMImport, *, author: events.Author, step: Step) -> None:
    """Undo an import in the caller's transaction; `step` is called with the number of rows done.

    Raises ImportInUse, ClusterDecides.
    """
    leases.nudge(vm_import.cluster_id, patient=True)
    rows = vm_import.rows.filter(written=True)
    networks = list(rows.order_by().values_list("values__network", flat=True).distinct())
    block_sync.lock_pools(pk for pk in networks if pk)
    locked_ippools = IPPool.objects.filter(network__in=networks).select_for_update().order_by("pk")
    ippools = {ippool.pk: ippool for ippool in locked_ippools}
    check_not_in_use(vm_import)
    rows_done = 0
    for batch in stored_rows.in_batches(rows, BATCH):
        registered = _registered(vm_import, batch)
        present = [  # others are deleted already
            (registered[row.object_id], row) for row in batch if row.object_id in registered
        ]
        created = [item for item, row in present if row.status == RowStatus.NEW]
        changed = [
            (i, row.before) for i, row in present if row.status != RowStatus.NEW and row.before
        ]
        if vm_import.target == ImportTarget.IPPOOL:
            _undo_entries(ippools, created, changed, author)
        else:
            _undo_claims(created, changed)
        rows_done += len(batch)
        step(rows_done)
    _end_all_ranges(vm_import)


def _undo_entries(
    ippools: dict[int, IPPool],
    created: Sequence[Entry],
    changed: Sequence[tuple[Entry, dict[str, Any]]],
    author: events.Author,
) -> None:
    entries.delete([entry.pk for entry in created], author=author)
    by_ippool: dict[int, list[entries.EntryRow]] = {}
    for entry, before in changed:
        texts = (before[name] for name in ("vm", "namespace", "note"))
        previous = entries.EntryRow(entry.pk, entry.mac or "", tuple(before["ips"]), *texts)
        by_ippool.setdefault(entry.ippool_id, []).append(previous)
    for pk, previous_rows in by_ippool.items():
        entries.apply_diff(ippools[pk], entries.EntryDiff(changed=previous_rows), {}, author=author)


def _undo_claims(
    created: Sequence[IPAMClaim], changed: Sequence[tuple[IPAMClaim, dict[str, Any]]]
) -> None:
    ingest.delete(created)
    for claim, before in changed:
        claim.mac, claim.ips_requested = before["mac"], before["ips"]
        claim.note = before["note"]
    if restored := [claim for claim, _ in changed]:
        ingest.store(restored, *CHANGED_COLUMNS)
        index.write(claims=restored)


def check_not_in_use(vm_import: VMImport) -> None:
    """Raise ImportInUse with the first rows that are in use."""
    used_rows = database.rows(_USED, {"import": vm_import.pk}, prepare=False)
    states.check_unused([f"row {line}: {why}" for line, why in used_rows])


_USED = statements.read("claims/import_rows_in_use")


# --- addresses of rows that are left out ----------------------------------------------------------


def _withhold(vm_import: VMImport) -> None:
    """Reserve the addresses of the rows that were left out, in the transaction of the commit, which has the locks."""
    if vm_import.limited:
        return
    for cidr in _cidrs(vm_import):
        networks = Network.objects.filter(pool=cidr.pool_id).values_list("pk", flat=True)
        # A row without a network may be of any.
        on_network = vm_import.rows.filter(
            Q(values__network__in=[*networks]) | Q(values__network=None)
        ).order_by("number")
        if noted := list(_noted(cidr)):
            lists = on_network.filter(written=True).values_list("values__ips", flat=True)
            written = {ip_interface(text).ip for ips in lists for text in ips}
            _end_ranges(cidr, [row for row in noted if row.first in written])
        names: dict[Address, str] = {}
        for row in on_network.filter(status__in=_LEFT_OUT):
            for address in import_rows.addresses_in_use(row):
                if address in cidr.cidr:
                    names.setdefault(address, row.vm or row.source_vm or row.source_mac)
        if names:
            _reserve(cidr, names, vm_import)


def _reserve(cidr: PoolCIDR, names: Mapping[Address, str], vm_import: VMImport) -> None:
    """Reserve the addresses that nobody has and no range has, each with the name of its VM."""
    held = Block.objects.filter(space=cidr.space_id, state="held", cidr__net_contained=cidr.cidr)
    known = {block.network_address for block in held.values_list("cidr", flat=True)}
    named = IndexEntry.objects.filter(network__pool=cidr.pool_id).exclude(address=None)
    known |= {*named.values_list("address", flat=True)}
    ranges = [AddressRange(row.first, row.last) for row in cidr.reserved_ranges.all()]
    reserved = 0
    for address, name in names.items():
        span = AddressRange(address, address)
        if address not in known and not any(span.overlaps(other) for other in ranges):
            reason = f"{kept_addresses.LEFT_OUT}: {name[:_LONGEST_NAME]} ({vm_import})"
            pool_cidrs.reserve(cidr, span, reason)
            reserved += 1
    if reserved:
        _note_change(cidr)


def _end_all_ranges(vm_import: VMImport) -> None:
    """End the ranges of an import, in the transaction of its undo, which has the locks."""
    for cidr in _cidrs(vm_import):
        _end_ranges(cidr, _noted(cidr).filter(reason__endswith=f" ({vm_import})"))


def _noted(cidr: PoolCIDR) -> QuerySet[ReservedRange]:
    return cidr.reserved_ranges.filter(reason__startswith=kept_addresses.LEFT_OUT)


def _end_ranges(cidr: PoolCIDR, rows: Iterable[ReservedRange]) -> None:
    ended = list(rows)
    for row in ended:
        pool_cidrs.unreserve(row)
    if ended:
        _note_change(cidr)


def _note_change(cidr: PoolCIDR) -> None:
    """Make the pool another version, so that no form that showed the former one overwrites it."""
    Pool.objects.filter(pk=cidr.pool_id).update(version=F("version") + 1)


def _cidrs(vm_import: VMImport) -> list[PoolCIDR]:
    """Return the CIDRs of the networks of an import."""
    ids = vm_import.rows.order_by().values_list("values__network", flat=True).distinct()
    networks = [pk for pk in ids if pk]
    rows = PoolCIDR.objects.filter(pool__network__in=networks).select_related("pool")
    return [cidr for cidr in rows.order_by("pool_id", "position") if not cidr.closed]
