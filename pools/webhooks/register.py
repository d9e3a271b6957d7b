"""What a review asks of the register: few statements, of bounded cost, that cannot write."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import Count

from pools.core import addresses
from pools.models import AddressSpace, Pool, PoolCIDR
from pools.models.pools import Category
from pools.register.allocator import window
from pools.sql import statements

STATEMENT_MS = 500  # an API server waits for seconds, whoever waits for it for less
FIRST = 20  # holders that are named
COUNTED = 10_000  # blocks; beyond that the number is not told
MOST_OVERLAPS = 20

# A whole CIDR, or a range of it.
Place = tuple[PoolCIDR, addresses.AddressRange | None]


@contextmanager
def reading() -> Iterator[None]:
    """A transaction in which PostgreSQL refuses every write; it leaves nothing behind."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('transaction_read_only', 'on', true),"
                " set_config('statement_timeout', %s, true)",
                [str(STATEMENT_MS)],
            )
        yield
        transaction.set_rollback(True)


@dataclass(frozen=True)
class Known:
    """A pool of the register, and its CIDRs with how many reserved ranges they have."""

    pool: Pool
    cidrs: dict[addresses.Network, PoolCIDR]
    ranges: int

    @property
    def places(self) -> list[Place]:
        """All of its CIDRs."""
        return [(row, None) for row in self.cidrs.values()]

    @property
    def is_of_pods(self) -> bool:
        return self.pool.category == Category.POD


def known(cluster_id: int, name: str) -> Known | None:
    """The cluster's pool of that name, of whatever category."""
    pool = Pool.objects.select_related("cluster").filter(cluster=cluster_id, name=name).first()
    if pool is None:
        return None
    rows = list(PoolCIDR.objects.filter(pool=pool).annotate(ranges=Count("reserved_ranges")))
    for row in rows:
        row.pool = pool
    return Known(pool, {row.cidr: row for row in rows}, sum(row.ranges for row in rows))


@dataclass(frozen=True)
class Used:
    """Blocks held or cooling somewhere; `count` is at most COUNTED + 1, `first` names some."""

    count: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        """`2 held or cooling blocks: node a (10.0.0.0/24, held), …`."""
        number = str(self.count) if self.count <= COUNTED else f"more than {COUNTED}"
        left = self.count - len(self.first)
        more = f" and {left if self.count <= COUNTED else 'many'} more" if left > 0 else ""
        plural = "s" * (self.count > 1)
        return f"{number} held or cooling block{plural}: {', '.join(self.first)}{more}"


def in_use(places: Sequence[Place]) -> list[tuple[PoolCIDR, addresses.AddressRange | None, Used]]:
    """Those of the places, all of one pool, where blocks are held or cooling; one statement."""
    if not places:
        return []
    bounds = [_bounds(*place) for place in places]
    with connection.cursor() as cursor:
        cursor.execute(
            _USED,
            {
                "numbers": list(range(len(places))),
                "firsts": [low for low, _ in bounds],
                "lasts": [high for _, high in bounds],
                "first_kinds": FIRST,
                "space": places[0][0].space_id,
                "most": COUNTED + 1,
            },
        )
        return [
            (*places[number], Used(count, tuple(first)))
            for number, count, first in cursor.fetchall()
        ]


def _bounds(row: PoolCIDR, span: addresses.AddressRange | None) -> tuple[str, str]:
    """The first and the last block that may be in use there."""
    grid = window.layout(row)
    touched = grid.span_touching(span or addresses.AddressRange.from_network(row.cidr))
    if touched is None:  # of another family: the caller has taken the row by its CIDR
        raise AssertionError(f"{span} touches no block of {row}")
    return str(grid.block_at(touched.first)), str(grid.block_at(touched.last))


_USED = statements.read("pools/used_blocks_in_cidrs")


@dataclass(frozen=True)
class Overlap:
    """A CIDR of another pool that shares addresses with one that is asked for."""

    wanted: addresses.Network
    cidr: str
    pool: str
    category: str
    cluster: str
    space: str
    orphaned: bool

    def __str__(self) -> str:
        kind = "" if self.category == Category.POD else f"{self.category} "
        where = f"{self.cluster}/{self.space}" if self.space else self.cluster
        orphan = ", an orphan that is in use" if self.orphaned else ""
        return (
            f"{self.wanted} overlaps {self.cidr} of the {kind}pool {self.pool} of {where}{orphan}"
        )


def overlaps(
    cidrs: Sequence[addresses.Network], *, space: AddressSpace, name: str, own: Pool | None
) -> list[Overlap]:
    """What overlaps in the same address space, and what only another object of the cluster has.

    Of the pool itself only what the cluster has lost and what is in use all the same.
    """
    texts = list(map(str, cidrs))
    here = [space.pk, own.pk if own else 0, texts]
    return _overlaps(_OVERLAPS_HERE, cidrs, [*here, texts, space.cluster_id, name])


def overlaps_elsewhere(cidrs: Sequence[addresses.Network], *, space_id: int) -> list[Overlap]:
    """What overlaps in other address spaces: of other clusters, of isolated VM networks."""
    return _overlaps(_OVERLAPS_ELSEWHERE, cidrs, [space_id])


def _overlaps(statement: str, cidrs: Sequence[addresses.Network], more: list[Any]) -> list[Overlap]:
    if not cidrs:
        return []
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(map(str, cidrs)), *more, MOST_OVERLAPS])
        return [Overlap(cidrs[number - 1], *columns) for number, *columns in cursor.fetchall()]


_COLUMNS = """
    SELECT wanted.number, c.cidr::text, p.name, p.category, cluster.name, s.name,
      COALESCE(c.orphaned_at, p.orphaned_at) IS NOT NULL
    FROM unnest(%s::cidr[]) WITH ORDINALITY AS wanted (cidr, number)
    JOIN pools_poolcidr c ON c.cidr && wanted.cidr
    JOIN pools_pool p ON p.id = c.pool_id
    JOIN pools_addressspace s ON s.id = c.space_id
    JOIN pools_cluster cluster ON cluster.id = s.cluster_id
"""
# A CIDR of an object that could not be taken in stands in no pool.
_OBSERVED = """
    SELECT wanted.number, taken.cidr::text, o.name, 'pod', cluster.name, '', false
    FROM unnest(%s::cidr[]) WITH ORDINALITY AS wanted (cidr, number)
    JOIN pools_observedobject o ON o.cluster_id = %s AND o.kind = 'CiliumPodIPPool' AND o.name <> %s
    JOIN pools_cluster cluster ON cluster.id = o.cluster_id
    JOIN LATERAL unnest(o.cidrs) AS taken (cidr) ON taken.cidr && wanted.cidr
    WHERE NOT EXISTS (
      SELECT FROM pools_poolcidr c JOIN pools_pool p ON p.id = c.pool_id
      WHERE p.cluster_id = o.cluster_id AND p.name = o.name AND c.cidr = taken.cidr)
"""
_OVERLAPS_HERE = f"""{_COLUMNS}
    WHERE c.space_id = %s AND (c.pool_id <> %s OR c.orphaned_at IS NOT NULL AND c.cidr <> ALL (%s::cidr[]))
    UNION ALL {_OBSERVED}
    ORDER BY 1, 3, 2 LIMIT %s
"""
_OVERLAPS_ELSEWHERE = f"""{_COLUMNS}
    WHERE c.space_id <> %s ORDER BY wanted.number, c.id LIMIT %s
"""


def families_of_others(cluster_id: int, name: str) -> set[int]:
    """The IP families that the cluster's other pod pools have."""
    others = Pool.objects.filter(cluster=cluster_id, category=Category.POD).exclude(name=name)
    sizes = others.values_list("mask_size_v4", "mask_size_v6").distinct()[:COUNTED]
    return {
        family
        for row in sizes
        for family, size in zip((4, 6), row, strict=True)
        if size is not None
    }
