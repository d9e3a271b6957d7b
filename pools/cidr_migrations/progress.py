"""The progress of a CIDR migration, derived from the pool, its ranges and its blocks."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min, Q

from pools.core import addresses, blocks
from pools.core.cilium import podippool
from pools.models import BlockState, CIDRMigration, Connection, Drift, Pool, PoolCIDR
from pools.models.connections import ManagedResource
from pools.models.pools import Category, MigrationOutcome, Pending
from pools.register import pool_cidrs
from pools.register.allocator import window

MOST_HOLDERS = 200  # listed for one migration


class MigrationStatus(enum.Enum):
    """The status of a migration."""

    PLANNED = "planned"  # blocks can still be allocated
    DRAINING = "draining"  # reserved; blocks are in use
    DRAINED = "drained"  # reserved; no block is held or cooling
    REMOVING = "removing"  # removed in the register; the cluster's object still has it
    REMOVED = "removed"
    KEPT = "kept"
    ABORTED = "aborted"


class MigrationStep(enum.Enum):
    """A step of a migration."""

    ADD = "add"  # add the replacement CIDR; this can be the first step
    RESERVE = "reserve"  # stop allocations from the range
    WIDEN = "widen"  # extend the migration from a range to the whole CIDR
    REMOVE = "remove"  # remove the drained CIDR
    KEEP = "keep"  # end the migration; the drained range stays reserved
    ABORT = "abort"  # cancel the migration; remove the ranges that it reserved


@dataclass(frozen=True)
class DrainingHolder:
    """A holder with blocks in the range that is emptied; `until` is the end of its last cooldown."""

    holder_kind: str
    holder_id: str
    state: str
    blocks: int
    first: str
    until: datetime | None = None


@dataclass(frozen=True)
class MigrationProgress:
    """The progress of a migration by the present state of the register.

    `total` is the number of blocks in use when the migration began, or now, whichever is higher.
    """

    status: MigrationStatus
    total: int
    held: int = 0
    cooling: int = 0
    holders: tuple[DrainingHolder, ...] = ()
    added: bool = False  # the pool and its cluster have the replacement CIDR
    adding: bool = False  # the register has it; the cluster's object does not have it yet
    orphaned: bool = False  # the CIDR was removed from the cluster's pool while in use
    by_cluster: bool = False  # the pool follows its cluster: steps are done in its manifest
    unwritten: bool = False  # changes of the pool are not applied in the cluster yet
    steps: tuple[MigrationStep, ...] = ()  # the steps that are possible now

    @property
    def in_use(self) -> int:
        return self.held + self.cooling

    @property
    def done(self) -> int:
        return self.total - self.in_use

    @property
    def percent(self) -> int:
        """The share of drained blocks in per cent, rounded down, so that only 100 means all."""
        return 100 * self.done // self.total if self.total else 100


def span_of(migration: CIDRMigration) -> addresses.AddressRange:
    """Return the range of addresses that the migration empties."""
    return addresses.AddressRange(migration.first, migration.last)


def is_whole(migration: CIDRMigration) -> bool:
    """Return True if the migration empties the whole CIDR."""
    return span_of(migration) == addresses.AddressRange.from_network(migration.cidr)


def migration_progress(
    migration: CIDRMigration, *, holder_limit: int = MOST_HOLDERS
) -> MigrationProgress:
    """Return the progress with at most `holder_limit` holders, those with the most blocks first."""
    if migration.outcome:
        added = _was_added(migration)
        return MigrationProgress(MigrationStatus(migration.outcome), migration.in_use, added=added)
    cidr = migration.pool_cidr
    if cidr is None:  # the CIDR was removed outside of the migration
        return MigrationProgress(
            MigrationStatus.REMOVED, migration.in_use, added=_was_added(migration)
        )
    rows = blocks_in_use(cidr, span_of(migration))
    counts = dict(rows.order_by().values_list("state").annotate(number=Count("id")))
    held, cooling = counts.get(BlockState.HELD, 0), counts.get(BlockState.COOLING, 0)
    added = migration.to is not None and is_replacement_added(migration)
    adding = migration.to is not None and not added and _new_cidr(migration).exists()
    status = _derive_status(cidr, span_of(migration), held + cooling)
    by_cluster = follows_cluster(migration.pool)
    return MigrationProgress(
        status,
        total=max(migration.in_use, held + cooling),
        held=held,
        cooling=cooling,
        holders=_draining_holders(rows, holder_limit) if holder_limit else (),
        added=added,
        adding=adding,
        orphaned=cidr.orphaned_at is not None,
        by_cluster=by_cluster,
        unwritten=has_unwritten_changes(migration.pool),
        steps=(MigrationStep.ABORT,)
        if by_cluster
        else _possible_steps(migration, status, added=added, adding=adding),
    )


def blocks_in_use(cidr: PoolCIDR, span: addresses.AddressRange) -> Any:
    """Return the held and cooling blocks that a range of a CIDR touches, in address order."""
    grid = window.layout(cidr)
    condition = Q(pk=None)
    for part in grid.withheld([span]):
        first, last = grid.block_at(part.first), grid.block_at(part.last)
        condition |= Q(cidr__gte=str(first), cidr__lte=str(last))
    return pool_cidrs.blocks_in_use(cidr).filter(condition)


def is_reserved(cidr: PoolCIDR, span: addresses.AddressRange) -> bool:
    """Return True if no block that the range touches can be allocated any more."""
    if cidr.closed:
        return True
    grid = window.layout(cidr)
    all_blocks = [blocks.Span(0, grid.count - 1)]
    outside = blocks.subtract(all_blocks, grid.withheld([span]))
    return not blocks.subtract(grid.allocatable(window.reserved_ranges(cidr)), outside)


def is_replacement_added(migration: CIDRMigration) -> bool:
    """Return True if the pool and its cluster have the replacement CIDR."""
    return bool(_new_cidr(migration).filter(pending="").exists())


def _new_cidr(migration: CIDRMigration) -> Any:
    return pool_cidrs.registered_cidrs([migration.pool_id]).filter(cidr=str(migration.to))


def _was_added(migration: CIDRMigration) -> bool:
    """Return True if the replacement CIDR was added by an ended migration; REMOVE requires it."""
    if migration.to is None:
        return False
    return migration.outcome == MigrationOutcome.REMOVED or is_replacement_added(migration)


def follows_cluster(pool: Pool) -> bool:
    """Return True if the pool follows its cluster's object, which the register does not write."""
    if pool.category != Category.POD or not pool.follows_cluster:
        return False
    connection = Connection.objects.filter(cluster=pool.cluster_id).first()
    return connection is not None and not connection.manages(ManagedResource.POOLS)


def has_unwritten_changes(pool: Pool) -> bool:
    """Return True if the last sync run found a difference between the cluster's object and the pool."""
    differences = Drift.objects.filter(cluster=pool.cluster_id, kind=podippool.KIND, name=pool.name)
    return differences.filter(path__startswith="spec", ignored_at=None).exists()


def _derive_status(cidr: PoolCIDR, span: addresses.AddressRange, in_use: int) -> MigrationStatus:
    if cidr.pending == Pending.REMOVAL:
        return MigrationStatus.REMOVING
    if not is_reserved(cidr, span):
        return MigrationStatus.PLANNED
    return MigrationStatus.DRAINING if in_use else MigrationStatus.DRAINED


def _possible_steps(
    migration: CIDRMigration, status: MigrationStatus, *, added: bool, adding: bool
) -> tuple[MigrationStep, ...]:
    if status is MigrationStatus.REMOVING:
        return (MigrationStep.ABORT,)
    whole, missing = is_whole(migration), migration.to is not None and not added
    conditions = {
        MigrationStep.ADD: missing and not adding,
        MigrationStep.RESERVE: status is MigrationStatus.PLANNED,
        MigrationStep.WIDEN: not whole and status is not MigrationStatus.PLANNED,
        MigrationStep.REMOVE: whole and status is MigrationStatus.DRAINED and not missing,
        MigrationStep.KEEP: not whole and status is MigrationStatus.DRAINED,
        MigrationStep.ABORT: True,
    }
    return tuple(step for step, is_possible in conditions.items() if is_possible)


def _draining_holders(rows: Any, limit: int) -> tuple[DrainingHolder, ...]:
    columns = ("holder_kind", "holder_id", "state")
    holder_rows = (
        rows.order_by()
        .values_list(*columns)
        .annotate(number=Count("id"), lowest=Min("cidr"), until=Max("available_from"))
        .order_by("-number", "holder_kind", "holder_id", "state")
    )
    return tuple(
        DrainingHolder(kind, name, state, number, str(lowest), until)
        for kind, name, state, number, lowest, until in holder_rows[:limit]
    )
