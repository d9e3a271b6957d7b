"""The progress of a CIDR migration, derived from the pool, its ranges and its blocks."""

import enum
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min, Q, prefetch_related_objects

from pools.core import addresses, blocks
from pools.core.cilium import podippool
from pools.models import (
    Category,
    CIDRMigration,
    Connection,
    Drift,
    ManagedResource,
    Pending,
    Pool,
    PoolCIDR,
)
from pools.models.pools import MigrationOutcome
from pools.platform import database
from pools.register import pool_cidrs
from pools.register.allocator import window
from pools.sql import statements

MOST_HOLDERS = 200  # listed for one migration
_COUNT_BLOCKS = statements.read("pools/blocks_in_spans")


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
    progress, cidr = drains([migration])[migration.pk], migration.pool_cidr
    if migration.outcome or cidr is None:
        return replace(progress, added=_was_added(migration))
    added = migration.to is not None and is_replacement_added(migration)
    adding = migration.to is not None and not added and _new_cidr(migration).exists()
    by_cluster = follows_cluster(migration.pool)
    return replace(
        progress,
        holders=_draining_holders(blocks_in_use(cidr, span_of(migration)), holder_limit),
        added=added,
        adding=adding,
        orphaned=cidr.orphaned_at is not None,
        by_cluster=by_cluster,
        unwritten=has_unwritten_changes(migration.pool),
        steps=(MigrationStep.ABORT,)
        if by_cluster
        else _possible_steps(migration, progress.status, added=added, adding=adding),
    )


def drains(migrations: Sequence[CIDRMigration]) -> dict[int, MigrationProgress]:
    """Return the status and the numbers of blocks of each migration by id, with two queries for all of them."""
    draining = {row.pk: row for row in migrations if row.pool_cidr and not row.outcome}
    prefetch_related_objects([*draining.values()], "pool_cidr__reserved_ranges")
    counts = _count_blocks([*draining.values()])
    progress = {}
    for row in migrations:
        if row.pk not in draining or row.pool_cidr is None:
            # Without an outcome the CIDR was removed outside of the migration.
            status = MigrationStatus(row.outcome or MigrationOutcome.REMOVED)
            progress[row.pk] = MigrationProgress(status, row.in_use)
            continue
        held, cooling = counts[row.pk]["held"], counts[row.pk]["cooling"]
        in_use = held + cooling
        status = _derive_status(row.pool_cidr, span_of(row), in_use)
        total = max(row.in_use, in_use)
        progress[row.pk] = MigrationProgress(status, total, held, cooling)
    return progress


def _count_blocks(migrations: Sequence[CIDRMigration]) -> dict[int, Counter[str]]:
    """Return how many blocks in the range of each migration are `held` and `cooling`."""
    counts: dict[int, Counter[str]] = {row.pk: Counter(held=0, cooling=0) for row in migrations}
    spans = [
        (row.pk, row.pool_cidr.space_id, first, last)
        for row in migrations
        if row.pool_cidr
        for first, last in _touched_blocks(row.pool_cidr, span_of(row))
    ]
    values = {
        "spaces": [space for _, space, _, _ in spans],
        "firsts": [first for _, _, first, _ in spans],
        "lasts": [last for _, _, _, last in spans],
    }
    for number, held, cooling in database.rows(_COUNT_BLOCKS, values, prepare=False):
        counts[spans[number - 1][0]].update(held=held, cooling=cooling)
    return counts


def _touched_blocks(cidr: PoolCIDR, span: addresses.AddressRange) -> Iterator[tuple[str, str]]:
    """Yield the first and the last of the blocks that a range touches."""
    grid = window.layout(cidr)
    for part in grid.withheld([span]):
        yield str(grid.block_at(part.first)), str(grid.block_at(part.last))


def blocks_in_use(cidr: PoolCIDR, span: addresses.AddressRange) -> Any:
    """Return the held and cooling blocks that a range of a CIDR touches, in address order."""
    condition = Q(pk=None)
    for first, last in _touched_blocks(cidr, span):
        condition |= Q(cidr__gte=first, cidr__lte=last)
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
