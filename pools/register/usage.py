"""Utilization of pools: the capacity from arithmetic, the use from counts by state.

For each family, in blocks: `held + cooling + reserved + free = capacity`.
"""

from __future__ import annotations

import functools
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from ipaddress import ip_address, ip_network
from typing import Any

from django.conf import settings
from django.contrib.postgres.aggregates import StringAgg
from django.db.models import Count, F, Func, Q, QuerySet, TextField, Value
from django.db.models.functions import Cast, Concat

from pools.core import addresses, blocks
from pools.models import LIVE, Block, BlockState, Now, Pool, PoolCIDR, PoolUsage, ReservedRange
from pools.models.pools import Pending
from pools.platform import database
from pools.sql import statements

FIELDS = ("mask_size_v4", "mask_size_v6", "allow_first_ip", "allow_last_ip")  # of the pools
LARGE = 50_000  # blocks in use; for larger pools, lists show the worker's last count


_COUNTS = ("capacity", "held", "cooling", "reserved", "pending")


@dataclass(frozen=True)
class Usage:
    """Counts of blocks; `reserved` blocks are withheld and not in use.

    `pending` of them lie in CIDRs that the cluster's object does not have yet.
    """

    capacity: int
    held: int = 0
    cooling: int = 0
    reserved: int = 0
    approximate: bool = False
    pending: int = 0

    @property
    def waits_for_cluster(self) -> bool:
        """True if nothing is in use, and nothing can be before the cluster has the pool's CIDRs."""
        return bool(self.pending) and not self.used and not self.free

    @property
    def used(self) -> int:
        return self.held + self.cooling

    @property
    def free(self) -> int:
        return max(0, self.capacity - self.used - self.reserved)

    @property
    def ratio(self) -> float:
        """The used share of the allocatable blocks, 0 to 1.

        1 for a pool without allocatable blocks, but 0 while it waits for its cluster.
        """
        allocatable = self.used + self.free
        return self.used / allocatable if allocatable else float(not self.waits_for_cluster)

    @property
    def percent(self) -> int:
        """The ratio in whole per cent, rounded down, so that only an exhausted pool has 100."""
        allocatable = self.used + self.free
        return 100 * self.used // allocatable if allocatable else 100 * (not self.waits_for_cluster)

    def times(self, size: int) -> Usage:
        """Return the counts of addresses, or of blocks of another size, of which a block has `size`."""
        counts = {name: size * getattr(self, name) for name in _COUNTS}
        return replace(self, **counts)

    @property
    def is_nearly_full(self) -> bool:
        """True if the ratio is above the threshold of warnings."""
        return 100 * self.ratio > settings.IPAM_ALERT_WARNING_PERCENT


@dataclass(frozen=True)
class _BlockCounts:
    held: int = 0
    cooling: int = 0
    withheld: int = 0


def pool_usage(pool: Pool) -> dict[int, Usage]:
    """Return the exact usage of a pool by family (4, 6)."""
    return _calculate_usages([pool], _count_blocks([pool.pk]), set())[pool.pk]


def usage_by_pool(pools: Iterable[Pool]) -> dict[int, dict[int, Usage]]:
    """Return usages by pool id and family; `approximate` for pools with more than LARGE blocks in use."""
    chosen = list(pools)
    large = _last_counts_of_large_pools(chosen)
    counted = _count_blocks([pool.pk for pool in chosen if pool.pk not in large])
    counted.update(large)
    return _calculate_usages(chosen, counted, set(large))


def waiting_pools(pool_ids: Iterable[int] | None = None) -> set[tuple[int, int]]:
    """Return (pool id, family) of pools of which the cluster has no CIDR of the family yet."""
    rows = PoolCIDR.objects.order_by()
    if pool_ids is not None:
        rows = rows.filter(pool__in=list(pool_ids))
    pending = set(rows.filter(pending=Pending.ADDITION).values_list("pool_id", "cidr__family"))
    pools = {pool_id for pool_id, _family in pending}
    others = rows.filter(pool__in=pools).exclude(pending=Pending.ADDITION)
    return pending - set(others.values_list("pool_id", "cidr__family"))


def usage_by_cidr(cidrs: Iterable[PoolCIDR]) -> dict[int, Usage]:
    """Return the usages of CIDRs by their ids.

    A CIDR of a pool with more than LARGE blocks in use has the usage of the pool, which is `approximate`.
    """
    chosen = list(cidrs)
    pools = {row.pool_id: row.pool for row in chosen}
    large = _last_counts_of_large_pools(list(pools.values()))
    usages_of_pools = usage_by_pool(pools[pool_id] for pool_id in large)
    ranges = _ranges(ReservedRange.objects.filter(pool_cidr__in=chosen))
    counts = _count_blocks_by_cidr([row for row in chosen if row.pool_id not in large])
    usages = {}
    for row in chosen:
        if row.pool_id in large:
            usages[row.pk] = usages_of_pools[row.pool_id][row.cidr.version]
            continue
        pool, count = row.pool, counts[row.pk]
        mask_size = pool.mask_size(row.cidr.version) or 0
        usable, allocatable = _count_sizes(
            str(row.cidr),
            mask_size,
            pool.allow_first_ip,
            pool.allow_last_ip,
            ranges.get(row.pk, ""),
        )
        reserved_count = (usable if row.closed else usable - allocatable) - count.withheld
        usages[row.pk] = Usage(usable, count.held, count.cooling, reserved_count)
    return usages


def _count_blocks_by_cidr(cidrs: list[PoolCIDR]) -> dict[int, _BlockCounts]:
    """Return the counts of CIDRs: the only one of a family has those of its pool, which an index knows."""
    families = PoolCIDR.objects.filter(pool__in={row.pool_id for row in cidrs}).order_by()
    numbers = families.values_list("pool_id", "cidr__family").annotate(number=Count("*"))
    alone = {(pool_id, family) for pool_id, family, number in numbers if number == 1}
    by_pool = _count_blocks([pool_id for pool_id, _family in alone])
    counts: dict[int, _BlockCounts] = defaultdict(_BlockCounts)
    others = []
    for row in cidrs:
        family = row.cidr.version
        if (row.pool_id, family) in alone:
            counts[row.pk] = by_pool.get(row.pool_id, {}).get(family, _BlockCounts())
        else:
            others.append(row)
    return counts | _count_blocks_of_cidrs(others) if others else counts


def _count_blocks_of_cidrs(cidrs: list[PoolCIDR]) -> dict[int, _BlockCounts]:
    grids = [blocks.Layout(row.cidr, row.pool.mask_size(row.cidr.version) or 0) for row in cidrs]
    values = {
        "numbers": [row.pk for row in cidrs],
        "spaces": [row.space_id for row in cidrs],
        "firsts": [str(grid.block_at(0)) for grid in grids],
        "lasts": [str(grid.block_at(grid.count - 1)) for grid in grids],
    }
    counts: dict[int, _BlockCounts] = defaultdict(_BlockCounts)
    for pk, state, withheld, number in database.rows(_COUNT_BLOCKS_OF_CIDRS, values, prepare=False):
        count = counts[pk]
        counts[pk] = replace(
            count,
            **{state: getattr(count, state) + number},
            withheld=count.withheld + number * withheld,
        )
    return counts


_COUNT_BLOCKS_OF_CIDRS = statements.read("pools/block_counts_of_cidrs")


def _last_counts_of_large_pools(pools: list[Pool]) -> dict[int, dict[int, _BlockCounts]]:
    """Return the worker's last counts of the pools with more than LARGE blocks in use."""
    counts: dict[int, dict[int, _BlockCounts]] = defaultdict(dict)
    for row in PoolUsage.objects.filter(pool__in=[pool.pk for pool in pools]):
        counts[row.pool_id][row.family] = _BlockCounts(row.held, row.cooling, row.withheld)
    return {
        pool_id: defaultdict(_BlockCounts, families)
        for pool_id, families in counts.items()
        if sum(count.held + count.cooling for count in families.values()) > LARGE
    }


def refresh_counts() -> int:
    """Count the blocks of large pools by one statement; return the number of rows written."""
    values = {"live": list(LIVE), "large": LARGE}
    # Planned with its values, so that the planner uses the partial index of these states.
    live = database.rows(_COUNT_LARGE_POOLS, values, prepare=False)
    rows = [
        PoolUsage(
            pool_id=pool_id,
            family=family,
            held=family_counts.held,
            cooling=family_counts.cooling,
            withheld=family_counts.withheld,
            counted_at=Now(),
        )
        for pool_id, families in _add_up(live).items()
        for family, family_counts in families.items()
    ]
    PoolUsage.objects.exclude(pool_id__in={row.pool_id for row in rows}).delete()
    PoolUsage.objects.bulk_create(
        rows,
        update_conflicts=True,
        unique_fields=["pool", "family"],
        update_fields=["held", "cooling", "withheld", "counted_at"],
    )
    return len(rows)


# Returns few rows for each large pool, and none for the many small ones.
_COUNT_LARGE_POOLS = statements.read("pools/block_counts_of_large_pools")


def _count_blocks(pool_ids: list[int]) -> dict[int, dict[int, _BlockCounts]]:
    rows = Block.objects.filter(pool__in=pool_ids, state__in=LIVE)
    columns = ("pool_id", "family", "state", "withheld")
    # Not Count("id"), which is not in the index of these columns.
    return _add_up(rows.values_list(*columns).annotate(number=Count("*")))


def _add_up(live: Iterable[tuple[Any, ...]]) -> dict[int, dict[int, _BlockCounts]]:
    """Sum rows (pool id, family, state, withheld, number) of blocks in use by pool id and family."""
    counted: dict[int, dict[int, _BlockCounts]] = defaultdict(lambda: defaultdict(_BlockCounts))
    for pool_id, family, state, withheld, number in live:
        family_counts = counted[pool_id][family]
        counted[pool_id][family] = replace(
            family_counts,
            **{state: getattr(family_counts, state) + number},
            withheld=family_counts.withheld + number * withheld,
        )
    # A cooldown whose end has passed does not count, whether or not a worker has cleaned it up.
    ended = Block.objects.filter(
        pool__in=list(counted), state=BlockState.COOLING, available_from__lte=Now()
    )
    for pool_id, family, number, withheld in ended.values_list("pool_id", "family").annotate(
        number=Count("id"), withheld=Count("id", filter=Q(withheld=True))
    ):
        family_counts = counted[pool_id][family]
        counted[pool_id][family] = replace(
            family_counts,
            cooling=family_counts.cooling - number,
            withheld=family_counts.withheld - withheld,
        )
    return counted


def _ranges(rows: QuerySet[ReservedRange]) -> dict[int, str]:
    """Return the reserved ranges of each CIDR by its id, as one text: `first-last first-last`."""
    texts = Concat(_host("first"), Value("-"), _host("last"), output_field=TextField())
    joined = rows.order_by().values_list("pool_cidr_id")
    return dict(joined.annotate(texts=StringAgg(texts, " ", order_by="first")))


def _host(column: str) -> Func:
    return Func(F(column), function="host", output_field=TextField())


@functools.lru_cache(maxsize=20_000)
def _count_sizes(
    cidr: str, mask_size: int, allow_first: bool, allow_last: bool, ranges: str
) -> tuple[int, int]:
    """Return how many blocks of a CIDR are usable, and how many of them no range withholds."""
    spans = [addresses.AddressRange(*map(ip_address, text.split("-"))) for text in ranges.split()]
    grid = blocks.Layout(
        ip_network(cidr), mask_size, allow_first=allow_first, allow_last=allow_last
    )
    return blocks.total(grid.usable()), blocks.total(grid.allocatable(spans))


def _calculate_usages(
    pools: list[Pool], counted: dict[int, dict[int, _BlockCounts]], approximate: set[int]
) -> dict[int, dict[int, Usage]]:
    usage: dict[int, dict[int, Usage]] = {
        pool.pk: {family: Usage(0) for family in (4, 6) if pool.mask_size(family) is not None}
        for pool in pools
    }
    by_id = {pool.pk: pool for pool in pools}
    ranges = _ranges(ReservedRange.objects.filter(pool__in=list(by_id)))
    # Plain rows and texts, because a scrape reads all pools at once, and counts each CIDR's sizes once.
    cidrs = PoolCIDR.objects.filter(pool__in=list(by_id)).order_by()
    for pk, pool_id, cidr, orphaned_at, pending in cidrs.values_list(
        "pk", "pool_id", Cast("cidr", TextField()), "orphaned_at", "pending"
    ):
        pool, family = by_id[pool_id], 6 if ":" in cidr else 4
        first, last = pool.allow_first_ip, pool.allow_last_ip
        usable, allocatable = _count_sizes(
            cidr, pool.mask_size(family) or 0, first, last, ranges.get(pk, "")
        )
        family_usage = usage[pool_id][family]
        usage[pool_id][family] = replace(
            family_usage,
            capacity=family_usage.capacity + usable,
            reserved=family_usage.reserved
            + (usable if orphaned_at or pending else usable - allocatable),
            pending=family_usage.pending + (usable if pending == Pending.ADDITION else 0),
        )
    for pool in pools:
        for family, family_usage in usage[pool.pk].items():
            count = counted.get(pool.pk, {}).get(family, _BlockCounts())
            usage[pool.pk][family] = replace(
                family_usage,
                held=count.held,
                cooling=count.cooling,
                reserved=family_usage.reserved - count.withheld,
                approximate=pool.pk in approximate,
            )
    return usage
