"""Which CIDRs of the register a draft divides: its prefixes in them, and what is left beside these.

NetBox nests prefixes freely: a prefix that is a pool here may get prefixes inside later, or become a container. A CIDR
that an import has brought gives way to them (pools/register/imports/division.py): a prefix becomes a pool of its own if
the CIDR has nothing there; else it becomes a CIDR of the same pool, which keeps what it holds. A row for the whole CIDR
becomes a container. What cannot be divided stays, and the prefixes in it are in conflict.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence

from pools.core.addresses import Network
from pools.core.register_import.parsing import CONTAINER, POOL, RESERVED
from pools.models import Pool, PoolCIDR, RegisterRecord, RegisterRow
from pools.models.register_imports import RowStatus
from pools.register import orphans, pool_cidrs
from pools.register.imports.places import Level, Place, judge
from pools.register.imports.topology import overlap

Obstacle = tuple[str, str]  # the code and the sentence of a conflict


def divide_cidrs(level: Level) -> None:
    """Give the prefixes of an import that lie in CIDRs of the register their place."""
    divided = [place for place in level.places if place.cidr and _is_container(place)]
    imported = _imported({place.cidr.pk for place in divided if place.cidr}) if divided else set()
    for place in divided:
        if place.cidr is None:
            continue
        inside = level.inside(place)
        if obstacle := _divide(place, place.cidr, inside, level, imported):
            place.has_children = False
            level.replace(inside, [])
            for child in inside:
                if child.row is not None:
                    judge(child.row, "conflict", *obstacle)


def _is_container(place: Place) -> bool:
    return place.has_children or (place.row is not None and place.row.target == CONTAINER)


def _imported(cidr_ids: set[int]) -> set[int]:
    """Return the ids of those CIDRs that an import has created."""
    rows = RegisterRow.objects.filter(target=POOL, written=True, object_id__in=cidr_ids)
    rows = rows.filter(status__in=[RowStatus.NEW, RowStatus.RELEASED]).order_by()
    return {pk for pk in rows.values_list("object_id", flat=True) if pk is not None}


def _divide(
    place: Place,
    cidr: PoolCIDR,
    inside: Sequence[Place],
    level: Level,
    imported: Collection[int],
) -> Obstacle | None:
    """Replace a CIDR by the prefixes in it and what is left of it; return why that is not possible."""
    where = f"the {'part' if place.part else 'CIDR'} {cidr} of the pool {cidr.pool}"
    if cidr.pk not in imported:
        return overlap(place)
    if cidr.closed:
        return "cidr_closed", f"{where} is being removed: import again when that is done"
    if not has_usable_edges(cidr.pool) and cidr.pool.cidrs.count() > 1:
        return "cidr_overlap", (
            f"lies in {where}, which has other CIDRs, too, and is not divided: move {cidr} to a pool of its own"
        )
    around = _container_around(place)
    rest = list(_rest(place, cidr, inside, around[0] if around else place.parent))
    if obstacle := _mark_in_use([*inside, *rest], cidr, where):
        return obstacle
    for child in inside:
        if child.parent is place:
            child.parent = around[0] if around else place.parent
    for child in (*around, *inside):
        _note_division(child, cidr, where)
    level.replace([place], [*around, *rest])
    return None


def has_usable_edges(pool: Pool) -> bool:
    """Return True if the first and the last address of each CIDR of the pool can be allocated."""
    return pool.allow_first_ip and pool.allow_last_ip


def _container_around(place: Place) -> list[Place]:
    """Return the container that the row of a whole CIDR becomes; none without such a row."""
    row = place.row
    if row is None:
        return []
    divided = row.target != CONTAINER
    return [Place(place.first, place.last, row, parent=place.parent, divided=divided)]


def _rest(
    place: Place, cidr: PoolCIDR, inside: Sequence[Place], outer: Place | None
) -> Iterator[Place]:
    """Yield what is left of a CIDR and of the containers in it beside the prefixes in them."""
    children: dict[int, list[Network]] = defaultdict(list)
    rows = [child.row for child in (place, *inside) if child.row is not None]
    for child in inside:
        if child.row is not None:
            children[id(child.parent)].append(child.row.cidr)
    for container in (place, *filter(_is_container, inside)):
        network: Network = container.row.cidr if container.row else cidr.cidr
        for free in _beside(network, children[id(container)]):
            yield Place(
                int(free.network_address),
                int(free.broadcast_address),
                cidr=cidr,
                part=True,
                part_of=place.part_of or str(cidr),
                parent=outer if container is place else container,
                rest_for=rows[0],
            )


def _beside(network: Network, holes: Sequence[Network]) -> Iterable[Network]:
    """Return what is left of a prefix; of one without prefixes inside its halves, because a container is no pool."""
    return orphans.remainder(network, holes) if holes else network.subnets()


def _mark_in_use(places: Iterable[Place], cidr: PoolCIDR, where: str) -> Obstacle | None:
    """Mark the places in which the CIDR has anything; return an obstacle if that lies in none of them as a whole."""
    pieces = sorted(
        (place for place in places if place.cidr or not _is_container(place)),
        key=lambda place: place.first,
    )
    firsts = [place.first for place in pieces]
    in_use = []
    address = type(cidr.cidr.network_address)
    for first, last in _in_use(cidr):
        piece = pieces[bisect_right(firsts, first) - 1]
        if last > piece.last:
            return "part_in_use", (
                f"the reserved range {address(first)}-{address(last)} of {where} would end in another CIDR than it"
                f" begins: divide the range at {address(piece.last)}, and import again"
            )
        in_use.append(piece)
    for piece in in_use:
        piece.in_use = True
    return None


def _note_division(place: Place, cidr: PoolCIDR, where: str) -> None:
    row = place.row
    if row is None:
        return
    row.pool_cidr_id = cidr.pk
    effect = f"divides {where}"
    if row.cidr == cidr.cidr:
        row.target = CONTAINER
        effect = f"{effect}, and becomes a network container"
    elif place.in_use:
        place.cidr, row.pool_name = cidr, cidr.pool.name
        effect = f"{effect}, and becomes a CIDR of this pool, which has addresses there"
    row.found = [*row.found, {"code": "part_divided", "message": effect}]


def _in_use(cidr: PoolCIDR) -> list[tuple[int, int]]:
    """Return the spans of blocks in use and of reserved ranges, without those that an import has derived."""
    blocks = pool_cidrs.blocks_in_use(cidr).values_list("cidr", flat=True)
    derived = RegisterRecord.objects.filter(
        space=cidr.space_id, target=RESERVED, details__has_key="part_of"
    )
    edges_of_prefix = set(derived.values_list("first", "last"))
    ranges = cidr.reserved_ranges.values_list("first", "last")
    return [
        *((int(block.network_address), int(block.broadcast_address)) for block in blocks),
        *((int(a), int(b)) for a, b in ranges if (a, b) not in edges_of_prefix),
    ]
