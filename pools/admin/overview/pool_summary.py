"""All pools with their numbers and states, for the start page; and what they sum up to."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from pools.admin.pools import page
from pools.models import Cluster, Pool, PoolCIDR
from pools.models.pools import Category
from pools.register import usage
from pools.register.utilization import series

CIDRS = 1000  # with reserved ranges, looked at for whether they drain


@dataclass(frozen=True)
class MeasuredPool:
    """A pool with its numbers."""

    pool: Pool
    families: dict[int, usage.Usage]
    state: str
    ratio: float = field(init=False)

    def __post_init__(self) -> None:
        ratio = max((counts.ratio for counts in self.families.values()), default=0.0)
        object.__setattr__(self, "ratio", ratio)

    @property
    def is_nearly_full(self) -> bool:
        return any(counts.is_nearly_full for counts in self.families.values())

    @property
    def percent(self) -> int:
        """Of the fuller family."""
        return max((counts.percent for counts in self.families.values()), default=0)

    @property
    def cooling(self) -> int:
        return sum(counts.cooling for counts in self.families.values())


@dataclass(frozen=True)
class PoolSummary:
    """`at` says when it was counted, None: just now. `draining` are wholly reserved CIDRs."""

    pools: Sequence[MeasuredPool]
    draining: Sequence[PoolCIDR]
    counted_at: datetime | None


@dataclass(frozen=True)
class ClusterSummary:
    """The pools of a cluster together, and the fullest of them."""

    cluster: Cluster
    families: dict[int, usage.Usage]
    fullest: MeasuredPool
    pools: int


def summarize() -> PoolSummary:
    """Everything, at a cost that pools set, not blocks."""
    measurement = series.measured()
    draining = _draining()
    drained = {cidr.pool_id for cidr in draining}
    pools = [
        MeasuredPool(pool, families, _state(families, draining=pool.pk in drained))
        for pool, families in measurement.pools
    ]
    return PoolSummary(pools, draining, measurement.moment)


def _state(families: dict[int, usage.Usage], *, draining: bool) -> str:
    """As of pool_page.state_of."""
    if any(not counts.free for counts in families.values()):
        return "full"
    return "draining" if draining else "active"


def _draining() -> list[PoolCIDR]:
    rows = PoolCIDR.objects.filter(reserved_ranges__isnull=False).distinct()
    rows = rows.select_related("pool__cluster").prefetch_related("reserved_ranges")
    return [
        cidr for cidr in rows.order_by("pool_id", "position", "id")[:CIDRS] if page.is_drained(cidr)
    ]


def category_summaries(pools: Iterable[MeasuredPool]) -> list[tuple[str, str, int, usage.Usage]]:
    """(category, its name, family, sum) as far as there are pools."""
    parts: dict[tuple[str, int], list[usage.Usage]] = defaultdict(list)
    for measured in pools:
        for family, counts in measured.families.items():
            parts[measured.pool.category, family].append(counts)
    return [
        (str(category), str(category.label), family, _sum(parts[category, family]))
        for category in Category
        for family in (4, 6)
        if (category, family) in parts
    ]


def cluster_summaries(pools: Iterable[MeasuredPool]) -> list[ClusterSummary]:
    """Clusters, that of the fullest pool first."""
    parts: dict[int, list[MeasuredPool]] = defaultdict(list)
    for measured in pools:
        parts[measured.pool.cluster_id].append(measured)
    summaries = [
        ClusterSummary(
            members[0].pool.cluster,
            {
                family: _sum(
                    [
                        measured.families[family]
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


def _sum(parts: list[usage.Usage]) -> usage.Usage:
    total = usage.Usage(0)
    for part in parts:
        total = replace(
            total,
            capacity=total.capacity + part.capacity,
            held=total.held + part.held,
            cooling=total.cooling + part.cooling,
            reserved=total.reserved + part.reserved,
            approximate=total.approximate or part.approximate,
        )
    return total
