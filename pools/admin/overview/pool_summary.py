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
class Measured:
    """A pool with its numbers."""

    pool: Pool
    families: dict[int, usage.Usage]
    state: str
    ratio: float = field(init=False)

    def __post_init__(self) -> None:
        ratio = max((one.ratio for one in self.families.values()), default=0.0)
        object.__setattr__(self, "ratio", ratio)

    @property
    def is_nearly_full(self) -> bool:
        return any(one.is_nearly_full for one in self.families.values())

    @property
    def percent(self) -> int:
        """Of the fuller family."""
        return max((one.percent for one in self.families.values()), default=0)

    @property
    def cooling(self) -> int:
        return sum(one.cooling for one in self.families.values())


@dataclass(frozen=True)
class Register:
    """`at` says when it was counted, None: just now. `draining` are wholly reserved CIDRs."""

    pools: Sequence[Measured]
    draining: Sequence[PoolCIDR]
    at: datetime | None


@dataclass(frozen=True)
class OfCluster:
    """The pools of a cluster together, and the fullest of them."""

    cluster: Cluster
    families: dict[int, usage.Usage]
    fullest: Measured
    pools: int


def register() -> Register:
    """Everything, at a cost that pools set, not blocks."""
    found = series.measure_pools()
    draining = _draining()
    drained = {one.pool_id for one in draining}
    pools = [
        Measured(pool, families, _state(families, draining=pool.pk in drained))
        for pool, families in found.pools
    ]
    return Register(pools, draining, found.moment)


def _state(families: dict[int, usage.Usage], *, draining: bool) -> str:
    """As of pool_page.state_of."""
    if any(not one.free for one in families.values()):
        return "full"
    return "draining" if draining else "active"


def _draining() -> list[PoolCIDR]:
    rows = PoolCIDR.objects.filter(reserved_ranges__isnull=False).distinct()
    rows = rows.select_related("pool__cluster").prefetch_related("reserved_ranges")
    return [one for one in rows.order_by("pool_id", "position", "id")[:CIDRS] if page.drained(one)]


def by_category(pools: Iterable[Measured]) -> list[tuple[str, str, int, usage.Usage]]:
    """(category, its name, family, sum) as far as there are pools."""
    parts: dict[tuple[str, int], list[usage.Usage]] = defaultdict(list)
    for one in pools:
        for family, counts in one.families.items():
            parts[one.pool.category, family].append(counts)
    return [
        (str(category), str(category.label), family, _sum(parts[category, family]))
        for category in Category
        for family in (4, 6)
        if (category, family) in parts
    ]


def by_cluster(pools: Iterable[Measured]) -> list[OfCluster]:
    """Clusters, that of the fullest pool first."""
    parts: dict[int, list[Measured]] = defaultdict(list)
    for one in pools:
        parts[one.pool.cluster_id].append(one)
    found = [
        OfCluster(
            of[0].pool.cluster,
            {
                family: _sum([one.families[family] for one in of if family in one.families])
                for family in (4, 6)
                if any(family in one.families for one in of)
            },
            max(of, key=lambda one: one.ratio),
            len(of),
        )
        for of in parts.values()
    ]
    return sorted(found, key=lambda one: (-one.fullest.ratio, one.cluster.name))


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
