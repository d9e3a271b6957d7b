"""How far the migration of a CIDR is: worked out of the pool, its ranges and its blocks."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Count, Max, Min, Q

from pools.core import addresses, blocks
from pools.core.cilium import podippool
from pools.models import CIDRMigration, Connection, Drift, Pool, PoolCIDR
from pools.models.blocks import BlockState
from pools.models.cidr_migrations import MigrationOutcome
from pools.models.connections import ManagedResource
from pools.models.pools import Category, Pending
from pools.register import pools
from pools.register.allocator import window

MOST_HOLDERS = 200  # told of one migration


class MigrationStatus(enum.Enum):
    """How far a migration is."""

    PLANNED = "planned"  # blocks may still be handed out there
    DRAINING = "draining"  # reserved, and blocks of it are in use
    DRAINED = "drained"  # reserved, and nothing holds or cools in it
    REMOVING = "removing"  # removed in the register; the cluster's object still has it
    REMOVED = "removed"
    KEPT = "kept"
    ABORTED = "aborted"


class MigrationStep(enum.Enum):
    """What can be done about a migration."""

    ADD = "add"  # the CIDR that takes its place; it may come first
    RESERVE = "reserve"  # nothing more is handed out of it
    WIDEN = "widen"  # from a range to the whole CIDR
    REMOVE = "remove"  # the drained CIDR
    KEEP = "keep"  # be done, with a drained range that stays reserved
    ABORT = "abort"  # give back what it reserved


@dataclass(frozen=True)
class DrainingHolder:
    """Somebody with blocks in what is emptied; `until` is the end of the last cooldown."""

    holder_kind: str
    holder_id: str
    state: str
    blocks: int
    first: str
    until: datetime | None = None


@dataclass(frozen=True)
class MigrationProgress:
    """How far a migration is, as the register has it now.

    `total` are the blocks that were in use when it began, or that are if these are more.
    """

    status: MigrationStatus
    total: int
    held: int = 0
    cooling: int = 0
    holders: tuple[DrainingHolder, ...] = ()
    added: bool = False  # the new CIDR is there
    adding: bool = False  # it was added in the register; the cluster's object does not have it yet
    orphaned: bool = False  # the cluster's pool lost the CIDR while blocks of it were in use
    by_cluster: bool = False  # the pool follows its cluster: steps are done in its manifest there
    unwritten: bool = False  # what the register says has not reached the cluster yet
    steps: tuple[MigrationStep, ...] = ()  # that can be done now

    @property
    def in_use(self) -> int:
        return self.held + self.cooling

    @property
    def done(self) -> int:
        return self.total - self.in_use

    @property
    def percent(self) -> int:
        """Rounded down, so that 100 is all."""
        return 100 * self.done // self.total if self.total else 100


def span_of(migration: CIDRMigration) -> addresses.AddressRange:
    """The addresses that it empties."""
    return addresses.AddressRange(migration.first, migration.last)


def is_whole(migration: CIDRMigration) -> bool:
    """Whether all of the CIDR is emptied."""
    return span_of(migration) == addresses.AddressRange.from_network(migration.cidr)


def migration_progress(
    migration: CIDRMigration, *, holder_limit: int = MOST_HOLDERS
) -> MigrationProgress:
    """With the holders that have the most blocks, at most so many."""
    if migration.outcome:
        added = _was_added(migration)
        return MigrationProgress(MigrationStatus(migration.outcome), migration.in_use, added=added)
    cidr = migration.pool_cidr
    if cidr is None:  # somebody else took it out
        return MigrationProgress(
            MigrationStatus.REMOVED, migration.in_use, added=_was_added(migration)
        )
    rows = in_use(cidr, span_of(migration))
    counts = dict(rows.order_by().values_list("state").annotate(number=Count("id")))
    held, cooling = counts.get(BlockState.HELD, 0), counts.get(BlockState.COOLING, 0)
    added = migration.to is not None and is_there(migration)
    adding = migration.to is not None and not added and _new_cidr(migration).exists()
    status = _status(cidr, span_of(migration), held + cooling)
    followed = follows_cluster(migration.pool)
    return MigrationProgress(
        status,
        total=max(migration.in_use, held + cooling),
        held=held,
        cooling=cooling,
        holders=_holders(rows, holder_limit) if holder_limit else (),
        added=added,
        adding=adding,
        orphaned=cidr.orphaned_at is not None,
        by_cluster=followed,
        unwritten=is_unwritten(migration.pool),
        steps=(MigrationStep.ABORT,)
        if followed
        else _steps(migration, status, added=added, adding=adding),
    )


def in_use(cidr: PoolCIDR, span: addresses.AddressRange) -> Any:
    """The held and cooling blocks that a range of a CIDR touches, as a queryset in address order."""
    grid = window.layout(cidr)
    touched = Q(pk=None)
    for part in grid.withheld([span]):
        first, last = grid.block_at(part.first), grid.block_at(part.last)
        touched |= Q(cidr__gte=str(first), cidr__lte=str(last))
    return pools.in_use(cidr).filter(touched)


def is_reserved(cidr: PoolCIDR, span: addresses.AddressRange) -> bool:
    """Whether no block that the range touches may be handed out any more."""
    if cidr.closed:
        return True
    grid = window.layout(cidr)
    everything = [blocks.Span(0, grid.count - 1)]
    outside = blocks.subtract(everything, grid.withheld([span]))
    return not blocks.subtract(grid.allocatable(window.ranges(cidr)), outside)


def is_there(migration: CIDRMigration) -> bool:
    """Whether the pool, and its cluster, have the CIDR that takes the place of the old one."""
    return bool(_new_cidr(migration).filter(pending="").exists())


def _new_cidr(migration: CIDRMigration) -> Any:
    return pools.listed([migration.pool_id]).filter(cidr=str(migration.to))


def _was_added(migration: CIDRMigration) -> bool:
    """Whether a migration that ended had the CIDR added: without it, none is removed by a step."""
    if migration.to is None:
        return False
    return migration.outcome == MigrationOutcome.REMOVED or is_there(migration)


def follows_cluster(pool: Pool) -> bool:
    """Whether the pool is what its cluster says, and nothing of it is written there."""
    if pool.category != Category.POD or not pool.follows_cluster:
        return False
    connection = Connection.objects.filter(cluster=pool.cluster_id).first()
    return connection is not None and not connection.manages(ManagedResource.POOLS)


def is_unwritten(pool: Pool) -> bool:
    """Whether the cluster's object differs from the pool, as the last pass found it."""
    differences = Drift.objects.filter(cluster=pool.cluster_id, kind=podippool.KIND, name=pool.name)
    return differences.filter(path__startswith="spec", ignored_at=None).exists()


def _status(cidr: PoolCIDR, span: addresses.AddressRange, in_use: int) -> MigrationStatus:
    if cidr.pending == Pending.REMOVAL:
        return MigrationStatus.REMOVING
    if not is_reserved(cidr, span):
        return MigrationStatus.PLANNED
    return MigrationStatus.DRAINING if in_use else MigrationStatus.DRAINED


def _steps(
    migration: CIDRMigration, status: MigrationStatus, *, added: bool, adding: bool
) -> tuple[MigrationStep, ...]:
    if status is MigrationStatus.REMOVING:
        return (MigrationStep.ABORT,)
    whole, missing = is_whole(migration), migration.to is not None and not added
    possible = {
        MigrationStep.ADD: missing and not adding,
        MigrationStep.RESERVE: status is MigrationStatus.PLANNED,
        MigrationStep.WIDEN: not whole and status is not MigrationStatus.PLANNED,
        MigrationStep.REMOVE: whole and status is MigrationStatus.DRAINED and not missing,
        MigrationStep.KEEP: not whole and status is MigrationStatus.DRAINED,
        MigrationStep.ABORT: True,
    }
    return tuple(step for step, can_be in possible.items() if can_be)


def _holders(rows: Any, most: int) -> tuple[DrainingHolder, ...]:
    columns = ("holder_kind", "holder_id", "state")
    holder_rows = (
        rows.order_by()
        .values_list(*columns)
        .annotate(number=Count("id"), lowest=Min("cidr"), until=Max("available_from"))
        .order_by("-number", "holder_kind", "holder_id", "state")
    )
    return tuple(
        DrainingHolder(kind, name, state, number, str(lowest), until)
        for kind, name, state, number, lowest, until in holder_rows[:most]
    )
