"""Read-only queries of admission reviews: few statements, each of bounded cost."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction
from django.db.models import Count

from pools.core import addresses
from pools.models import AddressSpace, Category, Pool, PoolCIDR
from pools.register.allocator import window
from pools.sql import statements

STATEMENT_MS = 500  # an API server waits 3 seconds, and its client waits for it
FIRST = 20  # holders listed by name
COUNTED = 10_000  # blocks; above this the message says "more than"
MOST_OVERLAPS = 20

# A whole CIDR, or a range of it.
CIDRPart = tuple[PoolCIDR, addresses.AddressRange | None]


@contextmanager
def read_only_transaction() -> Iterator[None]:
    """Run the block in a transaction in which PostgreSQL refuses writes, and roll it back."""
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
class RegisteredPool:
    """A pool of the register, its CIDRs, and the total number of their reserved ranges."""

    pool: Pool
    cidrs: dict[addresses.Network, PoolCIDR]
    ranges: int

    @property
    def whole_cidrs(self) -> list[CIDRPart]:
        """All CIDRs of the pool, each as a whole."""
        return [(row, None) for row in self.cidrs.values()]

    @property
    def is_of_pods(self) -> bool:
        return self.pool.category == Category.POD


def find_pool(cluster_id: int, name: str) -> RegisteredPool | None:
    """Return the cluster's pool of that name, of any category, or None."""
    pool = Pool.objects.select_related("cluster").filter(cluster=cluster_id, name=name).first()
    if pool is None:
        return None
    rows = list(PoolCIDR.objects.filter(pool=pool).annotate(ranges=Count("reserved_ranges")))
    for row in rows:
        row.pool = pool
    return RegisteredPool(pool, {row.cidr: row for row in rows}, sum(row.ranges for row in rows))


@dataclass(frozen=True)
class UsedBlocks:
    """Held or cooling blocks; `count` is at most COUNTED + 1, `first` describes some of them."""

    count: int
    first: tuple[str, ...]

    def __str__(self) -> str:
        """Return text such as `2 held or cooling blocks: node a (10.0.0.0/24, held), …`."""
        number = str(self.count) if self.count <= COUNTED else f"more than {COUNTED}"
        unnamed = self.count - len(self.first)
        more = f" and {unnamed if self.count <= COUNTED else 'many'} more" if unnamed > 0 else ""
        plural = "s" * (self.count > 1)
        return f"{number} held or cooling block{plural}: {', '.join(self.first)}{more}"


def find_used_blocks(
    parts: Sequence[CIDRPart],
) -> list[tuple[PoolCIDR, addresses.AddressRange | None, UsedBlocks]]:
    """Return the parts with held or cooling blocks, in one statement; all parts are of one pool."""
    if not parts:
        return []
    bounds = [_bounds(*part) for part in parts]
    with connection.cursor() as cursor:
        cursor.execute(
            _USED,
            {
                "numbers": list(range(len(parts))),
                "firsts": [low for low, _ in bounds],
                "lasts": [high for _, high in bounds],
                "first_kinds": FIRST,
                "space": parts[0][0].space_id,
                "most": COUNTED + 1,
            },
        )
        return [
            (*parts[number], UsedBlocks(count, tuple(first)))
            for number, count, first in cursor.fetchall()
        ]


def _bounds(row: PoolCIDR, span: addresses.AddressRange | None) -> tuple[str, str]:
    """Return the first and the last block of the part."""
    grid = window.layout(row)
    touched = grid.span_touching(span or addresses.AddressRange.from_network(row.cidr))
    if touched is None:  # the range has another IP family, which callers never pass
        raise AssertionError(f"{span} touches no block of {row}")
    return str(grid.block_at(touched.first)), str(grid.block_at(touched.last))


_USED = statements.read("pools/used_blocks_in_cidrs")


@dataclass(frozen=True)
class OverlappingCIDR:
    """A CIDR of another pool that overlaps a requested one."""

    requested: addresses.Network
    cidr: str
    pool: str
    category: str
    cluster: str
    space: str
    orphaned: bool

    def __str__(self) -> str:
        if self.category == Category.VM and self.space:  # its name may be that of a namespace
            return f"{self.requested} overlaps {self.cidr} of a VM network of {self.cluster}"
        kind = "" if self.category == Category.POD else f"{self.category} "
        where = f"{self.cluster}/{self.space}" if self.space else self.cluster
        orphan = ", an orphan in use" if self.orphaned else ""
        return f"{self.requested} overlaps {self.cidr} of the {kind}pool {self.pool} of {where}{orphan}"


def find_overlaps(
    cidrs: Sequence[addresses.Network], *, space: AddressSpace, name: str, pool: Pool | None
) -> list[OverlappingCIDR]:
    """Return the overlapping CIDRs of the same address space and of other objects of the cluster.

    CIDRs of `pool` itself count only if they are orphans that no CIDR of `cidrs` contains.
    """
    texts = list(map(str, cidrs))
    parameters = [space.pk, pool.pk if pool else 0, texts]
    return _query_overlaps(_OVERLAPS_HERE, cidrs, [*parameters, texts, space.cluster_id, name])


def find_overlaps_elsewhere(
    cidrs: Sequence[addresses.Network], *, space_id: int
) -> list[OverlappingCIDR]:
    """Return the overlapping CIDRs of other clusters and of isolated VM networks."""
    return _query_overlaps(_OVERLAPS_ELSEWHERE, cidrs, [space_id])


def _query_overlaps(
    statement: str, cidrs: Sequence[addresses.Network], more: list[Any]
) -> list[OverlappingCIDR]:
    if not cidrs:
        return []
    with connection.cursor() as cursor:
        cursor.execute(statement, [list(map(str, cidrs)), *more, MOST_OVERLAPS])
        return [
            OverlappingCIDR(cidrs[number - 1], *columns) for number, *columns in cursor.fetchall()
        ]


_COLUMNS = """
    SELECT requested.number, c.cidr::text, p.name, p.category, cluster.name, s.name,
      COALESCE(c.orphaned_at, p.orphaned_at) IS NOT NULL
    FROM unnest(%s::cidr[]) WITH ORDINALITY AS requested (cidr, number)
    JOIN pools_poolcidr c ON c.cidr && requested.cidr
    JOIN pools_pool p ON p.id = c.pool_id
    JOIN pools_addressspace s ON s.id = c.space_id
    JOIN pools_cluster cluster ON cluster.id = s.cluster_id
"""
# The CIDRs of an object that could not be ingested are in no pool.
_OBSERVED = """
    SELECT requested.number, observed.cidr::text, o.name, 'pod', cluster.name, '', false
    FROM unnest(%s::cidr[]) WITH ORDINALITY AS requested (cidr, number)
    JOIN pools_observedobject o ON o.cluster_id = %s AND o.kind = 'CiliumPodIPPool' AND o.name <> %s
    JOIN pools_cluster cluster ON cluster.id = o.cluster_id
    JOIN LATERAL unnest(o.cidrs) AS observed (cidr) ON observed.cidr && requested.cidr
    WHERE NOT EXISTS (
      SELECT FROM pools_poolcidr c JOIN pools_pool p ON p.id = c.pool_id
      WHERE p.cluster_id = o.cluster_id AND p.name = o.name AND c.cidr = observed.cidr)
"""
_OVERLAPS_HERE = f"""{_COLUMNS}
    WHERE c.space_id = %s AND (c.pool_id <> %s OR c.orphaned_at IS NOT NULL AND NOT c.cidr <<= ANY (%s::cidr[]))
    UNION ALL {_OBSERVED}
    ORDER BY 1, 3, 2 LIMIT %s
"""
_OVERLAPS_ELSEWHERE = f"""{_COLUMNS}
    WHERE c.space_id <> %s ORDER BY requested.number, c.id LIMIT %s
"""


def other_pool_families(cluster_id: int, name: str) -> set[int]:
    """Return the IP families of the cluster's other pod pools."""
    other_pools = Pool.objects.filter(cluster=cluster_id, category=Category.POD).exclude(name=name)
    sizes = other_pools.values_list("mask_size_v4", "mask_size_v6").distinct()[:COUNTED]
    return {
        family
        for row in sizes
        for family, size in zip((4, 6), row, strict=True)
        if size is not None
    }
