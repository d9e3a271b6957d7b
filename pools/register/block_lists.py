"""List blocks in use with their holders, read page by page so that memory use stays constant."""

from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import ip_address, ip_network
from typing import Any

from django.db.models import QuerySet
from psycopg import sql

from pools.core import errors
from pools.models import AddressSpace, Block, Cluster, Pool, PoolCIDR
from pools.platform import database

COLUMNS = (
    "cluster",
    "pool",
    "category",
    "block",
    "state",
    "holder_kind",
    "holder_id",
    "holder_uid",
    "org",
    "env",
    "allocated_at",
    "released_at",
    "available_from",
    "withheld",
)
_PAGE = 2_000  # rows


@dataclass(frozen=True)
class BlockSelection:
    """A filter of blocks: every field that is not "" or 0 must match.

    `pool` is a name, `cluster/name` or an id.
    """

    cluster: str = ""
    pool: str = ""
    category: str = ""
    family: int = 0
    state: str = ""  # held or cooling
    holder_kind: str = ""
    holder_id: str = ""
    org: str = ""
    env: str = ""


def list_blocks(selection: BlockSelection, *, limit: int | None = None) -> Iterator[dict[str, Any]]:
    """Yield held and cooling blocks in address order, as dictionaries of COLUMNS.

    Each page is a separate query that continues after the last row, so that a slow reader holds no
    lock and no snapshot. Raises InvalidInput `unknown_cluster`, `unknown_pool`.
    """
    values = _filter_values(selection)
    return _pages(values, limit)


def _pages(values: dict[str, Any], limit: int | None) -> Iterator[dict[str, Any]]:
    conditions = sql.SQL("").join(text for name, text in _CONDITIONS.items() if name in values)
    statement = _SELECT + conditions + _ORDER_AND_LIMIT
    position: dict[str, Any] = {"space": 0, "after": "0.0.0.0/0"}
    remaining = limit
    while remaining is None or remaining > 0:
        size = _PAGE if remaining is None else min(_PAGE, remaining)
        page = database.rows(statement, values | position | {"size": size}, prepare=False)
        for space, *row in page:
            yield dict(zip(COLUMNS, row, strict=True))
            position = {"space": space, "after": row[3]}
        if len(page) < size:
            return
        remaining = None if remaining is None else remaining - size


_CONDITIONS = {
    "spaces": sql.SQL(" AND b.space_id = ANY(%(spaces)s)"),
    "pools": sql.SQL(" AND b.pool_id = ANY(%(pools)s)"),
    "category": sql.SQL(" AND b.category = %(category)s"),
    "family": sql.SQL(" AND b.family = %(family)s"),
    "state": sql.SQL(" AND b.state = %(state)s"),
    "holder_kind": sql.SQL(" AND b.holder_kind = %(holder_kind)s"),
    "holder_id": sql.SQL(" AND b.holder_id = %(holder_id)s"),
    "org": sql.SQL(" AND b.org = %(org)s"),
    "env": sql.SQL(" AND b.env = %(env)s"),
}
# Available rows (windows of the allocator) have no holder.
_SELECT = sql.SQL("""
    SELECT b.space_id, c.name, p.name, b.category, b.cidr::text, b.state, b.holder_kind, b.holder_id,
        b.holder_uid, b.org, b.env, b.allocated_at, b.released_at, b.available_from, b.withheld
    FROM pools_block b JOIN pools_pool p ON p.id = b.pool_id JOIN pools_cluster c ON c.id = p.cluster_id
    WHERE b.state IN ('held', 'cooling') AND (b.space_id, b.cidr) > (%(space)s, %(after)s::cidr)
""")
_ORDER_AND_LIMIT = sql.SQL(" ORDER BY b.space_id, b.cidr LIMIT %(size)s")


def _filter_values(selection: BlockSelection) -> dict[str, Any]:
    names = ("category", "family", "state", "holder_kind", "holder_id", "org", "env")
    values: dict[str, Any] = {
        name: value for name in names if (value := getattr(selection, name)) not in {"", 0}
    }
    if selection.cluster:
        values["spaces"] = _spaces(selection.cluster)
    if selection.pool:
        pool_rows = _pools(selection.pool)
        values["pools"] = [pk for pk, _ in pool_rows]
        spaces = {space for _, space in pool_rows}
        values["spaces"] = sorted(spaces & set(values.get("spaces", spaces)))
    return values


def _spaces(cluster: str) -> list[int]:
    cluster_row = Cluster.objects.filter(name=cluster).first()
    if cluster_row is None:
        raise errors.InvalidInput.for_field(
            "cluster", "unknown_cluster", f"there is no cluster {cluster}", cluster
        )
    return list(AddressSpace.objects.filter(cluster=cluster_row).values_list("pk", flat=True))


def _pools(text: str) -> list[tuple[int, int]]:
    """Return (id, address space id) of the pools named `name` or `cluster/name`, or with that id."""
    cluster, _, name = text.rpartition("/")
    pool_rows = Pool.objects.filter(name=name)
    if cluster:
        pool_rows = pool_rows.filter(cluster__name=cluster)
    elif text.isascii() and text.isdigit() and len(text) < 18:
        pool_rows = pool_rows | Pool.objects.filter(pk=int(text))
    matches = list(pool_rows.values_list("pk", "space_id"))
    if not matches:
        raise errors.InvalidInput.for_field(
            "pool", "unknown_pool", f"there is no pool {text}", text
        )
    return matches


def blocks_around(address: str) -> list[str]:
    """Return the CIDRs of the blocks that contain an address, in pools of any mask size."""
    parsed = ip_address(address)
    name = f"mask_size_v{parsed.version}"
    sizes = Pool.objects.exclude(**{name: None}).values_list(name, flat=True).distinct()
    return [str(ip_network((address, size), strict=False)) for size in sizes.order_by(name)]


def filter_by_cluster(rows: QuerySet[Block], cluster_id: int) -> QuerySet[Block]:
    """Filter blocks by the address spaces of a cluster, with which the index of their order begins."""
    spaces = AddressSpace.objects.filter(cluster_id=cluster_id).values_list("pk", flat=True)
    return rows.filter(space__in=list(spaces))


def filter_by_pool(rows: QuerySet[Block], pool_id: int) -> QuerySet[Block]:
    """Filter blocks by their pool so that the address order is still read from an index.

    The bounds exclude no block; without them PostgreSQL would sort all blocks of the pool for one page.
    """
    pool_cidrs = PoolCIDR.objects.filter(pool_id=pool_id).values_list("space_id", "cidr")
    cidrs = sorted(pool_cidrs, key=lambda row: (row[1].version, int(row[1].network_address)))
    rows = rows.filter(pool_id=pool_id)
    if not cidrs:
        return rows
    (space_id, first), (_space_id, last) = cidrs[0], cidrs[-1]
    end = f"{last.broadcast_address}/{last.max_prefixlen}"
    return rows.filter(space_id=space_id, cidr__gte=str(first), cidr__lte=end)
