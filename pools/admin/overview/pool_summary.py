"""Pools with their usage and state, and sums by category and cluster, for the start page."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime

from pools.admin.pools import page
from pools.core import addresses
from pools.models import Category, Cluster, Pool
from pools.register import orphans, usage
from pools.register.utilization import series


@dataclass(frozen=True)
class MeasuredPool:
    """A pool with its usage per IP family and its state; `ratio` is that of the fuller family."""

    pool: Pool
    families: dict[int, usage.Usage]
    state: str
    ratio: float = field(init=False)

    def __post_init__(self) -> None:
        ratio = max((counts.ratio for counts in self.families.values()), default=0.0)
        object.__setattr__(self, "ratio", ratio)

    @property
    def percent(self) -> int:
        """Utilization of the fuller family in percent."""
        return max((counts.percent for counts in self.families.values()), default=0)

    @property
    def cooling(self) -> int:
        return sum(counts.cooling for counts in self.families.values())


@dataclass(frozen=True)
class PoolSummary:
    """All pools; `counted_at` is None if counted just now."""

    pools: Sequence[MeasuredPool]
    counted_at: datetime | None


@dataclass(frozen=True)
class ClusterSummary:
    """The usage of all pools of a cluster, in addresses, and its most utilized pool."""

    cluster: Cluster
    families: dict[int, usage.Usage]
    fullest: MeasuredPool
    pools: int


def summarize() -> PoolSummary:
    """Measure all pools. The cost grows with the number of pools, not of blocks."""
    measurement = series.measure_pools()
    drained = {cidr.pool_id for cidr in orphans.draining_cidrs()}
    pools = [
        MeasuredPool(pool, families, page.pool_state(families, draining=pool.pk in drained))
        for pool, families in measurement.pools
    ]
    return PoolSummary(pools, measurement.moment)


def category_summaries(pools: Iterable[MeasuredPool]) -> list[tuple[str, str, int, usage.Usage]]:
    """Return (category, label, IP family, usage in addresses) for each category that has pools."""
    parts: dict[tuple[str, int], list[usage.Usage]] = defaultdict(list)
    for measured in pools:
        for family in measured.families:
            parts[measured.pool.category, family].append(_in_addresses(measured, family))
    return [
        (str(category), str(category.label), family, _sum(parts[category, family]))
        for category in Category
        for family in (4, 6)
        if (category, family) in parts
    ]


def cluster_summaries(pools: Iterable[MeasuredPool]) -> list[ClusterSummary]:
    """Return a summary per cluster, the one with the most utilized pool first."""
    parts: dict[int, list[MeasuredPool]] = defaultdict(list)
    for measured in pools:
        parts[measured.pool.cluster_id].append(measured)
    summaries = [
        ClusterSummary(
            members[0].pool.cluster,
            {
                family: _sum(
                    [
                        _in_addresses(measured, family)
                        for measured in members
                        if family in measured.families
                    ]
                )
                for family in (4, 6)
                if any(family in measured.families for measured in members)
            },
            max(members, key=lambda measured: measured.ratio),
            len(members),
        )
        for members in parts.values()
    ]
    return sorted(summaries, key=lambda summary: (-summary.fullest.ratio, summary.cluster.name))


def _in_addresses(measured: MeasuredPool, family: int) -> usage.Usage:
    """Return the usage in addresses: pools of other mask sizes have other blocks."""
    length = addresses.LONGEST_PREFIX[family] - (measured.pool.mask_size(family) or 0)
    return measured.families[family].times(1 << length)


def _sum(parts: list[usage.Usage]) -> usage.Usage:
    return usage.Usage(
        capacity=sum(part.capacity for part in parts),
        held=sum(part.held for part in parts),
        cooling=sum(part.cooling for part in parts),
        reserved=sum(part.reserved for part in parts),
        approximate=any(part.approximate for part in parts),
    )
