"""Parts of a prefix that became a container because other prefixes are inside: a pool for the addresses directly in it.

In NetBox and phpIPAM an active prefix may hold addresses beside the prefixes inside it. In this register a container
holds none, so an import adds rows: a pool with the name of the prefix has the free parts that hold these addresses,
each an aligned /24 (IPv6: /64) or what of it is free, or as much as a range needs. What else is free stays
free for prefixes that are added later. The network and the broadcast address of the prefix become reserved in them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from ipaddress import ip_network

from pools.core.addresses import LONGEST_PREFIX
from pools.core.register_import.parsing import HELD, POOL, RESERVED
from pools.models import RegisterRow
from pools.register.imports.places import Level, Place, edge_name, edges, judge

_SIZES = {4: 1 << 8, 6: 1 << 64}  # of a part
_SHARED = ("source_import_id", "file", "line")


def divide(
    located: Sequence[tuple[RegisterRow, Level]], all_levels: Iterable[Level], number: int
) -> list[RegisterRow]:
    """Return the rows of all parts, numbered from `number`, and add their places to the levels."""
    levels = {id(level): level for _, level in located}
    blocks: dict[int, dict[tuple[int, int], Place]] = {key: {} for key in levels}
    registered: dict[int, Place] = {
        id(place): place for level in all_levels for place in level.places if _is_kept(place)
    }
    for row, level in located:
        first, last = int(row.first), int(row.last)
        place = level.innermost(first)
        if place is None:
            continue
        if place.part and place.row is None and place.parent:
            registered[id(place)] = place
        elif place.divided and not (row.target == HELD and _is_edge(place, row)):
            block = _find_block(first, last, *_free_space(level, place, first), row.first.version)
            if block is not None:
                blocks[id(level)][block] = place
            else:
                _refuse_range(row, place)
    parts = list(registered.values())
    for key, found in blocks.items():
        new = list(_distinct(found))
        levels[key].add(new)
        parts += new
    rows = [row for place in parts for row in _rows(place)]
    for position, row in enumerate(rows):
        row.number = number + position
    return rows


def _free_space(level: Level, place: Place, number: int) -> tuple[int, int]:
    """Return the ends of the free space around an address, or of its half if it is all of the container."""
    low, high = level.gap(place, number)
    if (low, high) != (place.first, place.last):
        return low, high
    middle = (low + high) // 2
    return (low, middle) if number <= middle else (middle + 1, high)


def _is_kept(place: Place) -> bool:
    return place.part and place.in_use and place.row is None


def _is_edge(place: Place, row: RegisterRow) -> bool:
    usable = place.row is not None and "is_pool" in place.row.details
    return not usable and int(row.first) in edges(place, row.first.version)


def _find_block(first: int, last: int, low: int, high: int, version: int) -> tuple[int, int] | None:
    """Return the first address and the negative size of the part for some addresses in free space; None without one."""
    size = 1 << (first ^ last).bit_length()
    if first & -size < low or (first & -size) + size - 1 > high:
        return None
    largest = max(size, _SIZES[version])
    if first & -largest >= low and (first & -largest) + largest - 1 <= high:
        return first & -largest, -largest
    while first & -(2 * size) >= low and (first & -(2 * size)) + 2 * size - 1 <= high:
        size *= 2
    return first & -size, -size


def _distinct(blocks: dict[tuple[int, int], Place]) -> Iterator[Place]:
    """Yield the places of the blocks that no larger one contains."""
    end = -1
    for (first, size), parent in sorted(blocks.items(), key=lambda item: item[0]):
        if first > end:
            end = first - size - 1
            yield Place(first, end, part=True, parent=parent)


def _refuse_range(row: RegisterRow, place: Place) -> None:
    message = (
        f"the range {row.first}-{row.last} lies in {place.name} beside prefixes inside it, and no free part of it"
        " has the whole range: divide the range at these prefixes"
    )
    judge(row, "invalid", "range_outside_cidr", message)


def _rows(place: Place) -> Iterator[RegisterRow]:
    """Yield the row of a part, and those of the addresses in it that no host can have."""
    around = place.parent.row if place.parent else None
    if around is None:
        return
    version, address = around.first.version, type(around.first)
    length = LONGEST_PREFIX[version] - (place.last - place.first).bit_length()
    cidr = ip_network(f"{address(place.first)}/{length}")
    part_of = str(around.cidr)
    row = _row(around, part_of, "prefix", POOL, str(cidr))
    row.cidr, row.first, row.last = cidr, cidr.network_address, cidr.broadcast_address
    row.pool_name, row.description, row.org = around.pool_name, around.description, around.org
    message = f"a free part of {part_of}, for addresses and ranges that are in none of the prefixes inside it"
    row.problems = [{"code": "part", "message": message}]
    if place.cidr is not None:
        row.pool_cidr_id, row.pool_name = place.cidr.pk, place.cidr.pool.name
    place.row = row
    yield row
    if place.parent is None or "is_pool" in around.details:
        return
    for number in edges(place.parent, version):
        if place.first <= number <= place.last:
            name = edge_name(place.parent, number, version)
            edge = _row(around, part_of, "address", RESERVED, str(address(number)))
            edge.first = edge.last = address(number)
            edge.cidr = ip_network(edge.first)
            edge.description = f"{name} of {around.cidr}"
            yield edge


def _row(like: RegisterRow, part_of: str, kind: str, target: str, text: str) -> RegisterRow:
    shared = {name: getattr(like, name) for name in _SHARED}
    return RegisterRow(
        **shared,
        texts={kind: text, "part_of": part_of},
        values={
            "kind": kind,
            "target": target,
            "cluster_id": like.cluster_id,
            "space_name": like.space_name,
            "details": {"part_of": part_of},
        },
    )
