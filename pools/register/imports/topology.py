"""Which prefixes become containers, which become pools, and in which pool each address lies.

A prefix with the status container, or with another prefix or a registered CIDR inside, becomes a container;
every other one becomes a pool. All rows of an import are looked at together, with the CIDRs that the register
has already: it is arithmetic on sorted spans, in memory.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pools.core.register_import.parsing import CONTAINER, HELD, POOL, RESERVED
from pools.models import PoolCIDR, RegisterRow

Space = tuple[int, str, int]  # cluster id, name of the address space, IP family
_HOST = {4: 32, 6: 128}


@dataclass
class Place:
    """A prefix of an import, or a CIDR of the register, as a span of addresses."""

    first: int
    last: int
    row: RegisterRow | None = None
    cidr: PoolCIDR | None = None
    has_children: bool = False

    @property
    def name(self) -> str:
        return str(self.row.cidr if self.row else self.cidr)


@dataclass
class _Level:
    """The places of one address space and family that hold addresses, in order, and those that contain others."""

    firsts: list[int] = field(default_factory=list)
    leaves: list[Place] = field(default_factory=list)
    containers: dict[int, set[int]] = field(default_factory=lambda: defaultdict(set))  # by size

    def leaf_of(self, number: int) -> Place | None:
        index = bisect_right(self.firsts, number) - 1
        leaf = self.leaves[index] if index >= 0 else None
        return leaf if leaf is not None and number <= leaf.last else None

    def is_in_container(self, number: int) -> bool:
        return any(number & ~(size - 1) in firsts for size, firsts in self.containers.items())


def resolve(rows: Sequence[RegisterRow], other_clusters: Sequence[int] = ()) -> None:
    """Set target, pool and the problems of position of all rows that could be parsed and are not skipped.

    An address that its own cluster has no prefix for is looked for in `other_clusters`.
    """
    prefixes: dict[Space, list[Place]] = defaultdict(list)
    others: list[RegisterRow] = []
    for row in rows:
        if row.skipped or row.verdict == "refused":
            continue
        if row.kind == "prefix":
            prefixes[_space(row)].append(Place(int(row.first), int(row.last), row))
        else:
            others.append(row)
    spaces = {*prefixes, *map(_space, others)}
    spaces |= {(cluster, *space[1:]) for cluster in other_clusters for space in spaces}
    for space, place in _registered(spaces):
        prefixes[space].append(place)
    levels = {space: _build(places) for space, places in prefixes.items()}
    seen: dict[tuple[Any, ...], RegisterRow] = {}
    for row in others:
        level = _level_of(row, levels, other_clusters)
        _locate(row, level)
        if row.target == HELD:
            _refuse_duplicate(seen, (*_space(row), row.first), row)
    _compare_ranges([row for row in others if row.target == RESERVED and not row.verdict])


def _level_of(
    row: RegisterRow, levels: Mapping[Space, _Level], other_clusters: Sequence[int]
) -> _Level:
    """Return the level of the row's address space, or move the row to another cluster that has its prefix."""
    level = levels.get(_space(row)) or _Level()
    if row.texts.get("cluster") or level.leaf_of(int(row.first)):
        return level
    for cluster in other_clusters:
        other = levels.get((cluster, *_space(row)[1:]))
        if other is not None and other.leaf_of(int(row.first)):
            row.cluster_id = cluster
            return other
    return level


def _space(row: RegisterRow) -> Space:
    return row.cluster_id or 0, row.space_name, row.first.version


def _registered(spaces: Iterable[Space]) -> Iterator[tuple[Space, Place]]:
    """Yield the CIDRs that the pools of these address spaces have."""
    clusters = {cluster for cluster, _, _ in spaces}
    cidrs = PoolCIDR.objects.filter(space__cluster__in=clusters).select_related("pool", "space")
    for cidr in cidrs:
        space = (cidr.space.cluster_id, cidr.space.name, cidr.cidr.version)
        if space in spaces:
            first, last = cidr.cidr.network_address, cidr.cidr.broadcast_address
            yield space, Place(int(first), int(last), cidr=cidr)


def _build(places: list[Place]) -> _Level:
    """Sort places into a tree, by a walk that keeps the places around the present one on a stack."""
    # A registered CIDR comes before the row that names it again.
    places.sort(key=lambda place: (place.first, -place.last, place.cidr is None))
    stack: list[Place] = []
    distinct: list[Place] = []
    for place in places:
        while stack and stack[-1].last < place.first:
            stack.pop()
        around = stack[-1] if stack else None
        if around is not None and (around.first, around.last) == (place.first, place.last):
            _meet_equal(around, place)
            continue
        if around is not None:
            if around.cidr is not None and place.row is not None:
                message = f"{place.name} lies in {around.name} of the pool {around.cidr.pool}"
                _judge(place.row, "conflict", "cidr_overlap", message)
                continue
            around.has_children = True
        stack.append(place)
        distinct.append(place)
    return _sort_into_level(distinct)


def _meet_equal(around: Place, place: Place) -> None:
    """Note that a prefix is named a second time: by the register and a row, or by two rows."""
    if place.row is None:
        return
    if around.row is not None:
        if _gives_way(around.row):
            around.row, place.row = place.row, around.row
        message = f"row {around.row.line} of the import has the prefix {place.name} already"
        verdict = "unchanged" if _gives_way(place.row) else "conflict"
        _judge(place.row, verdict, "duplicate_in_file", message)
    else:
        around.row = place.row


def _gives_way(row: RegisterRow) -> bool:
    """Return True for the prefix above a table of addresses, and for an aggregate: another row may have it, too."""
    return "heading" in row.texts or "rir" in row.texts


def _sort_into_level(places: Iterable[Place]) -> _Level:
    level = _Level()
    for place in places:
        row = place.row
        if row is not None:
            is_container = place.has_children or row.target == CONTAINER
            row.target = CONTAINER if is_container and place.cidr is None else row.target or POOL
            if row.target == POOL and row.details.get("status") == "active":
                del row.details[
                    "status"
                ]  # that of every pool; a container goes back to NetBox with its own
            row.pool_cidr_id = place.cidr.pk if place.cidr else None
            row.pool_row = None
        if place.cidr is not None or (row is not None and row.target == POOL):
            level.firsts.append(place.first)
            level.leaves.append(place)
        else:
            level.containers[place.last - place.first + 1].add(place.first)
    return level


def _locate(row: RegisterRow, level: _Level) -> None:
    """Find the pool of an address or a range, and refuse what no pool can hold."""
    row.pool_row = row.pool_cidr_id = None
    first, last = int(row.first), int(row.last)
    leaf = level.leaf_of(first)
    if leaf is None:
        _refuse_outside(row, level)
    elif last > leaf.last:
        message = f"the range does not lie in one prefix: {leaf.name} ends before {row.last}"
        _judge(row, "refused", "range_outside_cidr", message)
    else:
        row.pool_row = leaf.row.number if leaf.row and leaf.cidr is None else None
        row.pool_cidr_id = leaf.cidr.pk if leaf.cidr else None
        _check_pool(row, leaf)
        if row.target == HELD:
            _check_edges(row, leaf)


def _refuse_outside(row: RegisterRow, level: _Level) -> None:
    place = row.first if row.first == row.last else f"{row.first}-{row.last}"
    if level.is_in_container(int(row.first)):
        message = f"{place} lies in a network container, and no pool inside it has it; add a prefix"
        _judge(row, "refused", "in_container", message)
    else:
        message = f"no prefix of the import and no pool of the register has {place}"
        _judge(row, "refused", "outside_every_prefix", message)


def _check_pool(row: RegisterRow, leaf: Place) -> None:
    if leaf.cidr is None:
        return
    pool, size = leaf.cidr.pool, leaf.cidr.pool.mask_size(row.first.version)
    if leaf.cidr.closed:
        message = (
            f"{leaf.cidr} of the pool {pool} is being removed: nothing new is allocated from it"
        )
        _judge(row, "conflict", "cidr_closed", message)
    elif row.target == HELD and size != _HOST[row.first.version]:
        message = f"the pool {pool} allocates blocks of /{size}, no single addresses"
        _judge(row, "conflict", "mask_size", message)


def _check_edges(row: RegisterRow, leaf: Place) -> None:
    """Refuse what no host can have: network and broadcast address, and IPv6's subnet-router anycast address."""
    if leaf.last - leaf.first < 2:
        return  # RFC 3021, RFC 6164
    pool = leaf.cidr.pool if leaf.cidr else None
    if leaf.row is not None and pool is None and "is_pool" in leaf.row.details:
        return
    number = int(row.first)
    if number == leaf.first and not (pool and pool.allow_first_ip):
        name = "network address" if row.first.version == 4 else "subnet-router anycast address"
        _judge(row, "refused", "network_address", f"{row.first} is the {name} of {leaf.name}")
    elif number == leaf.last and row.first.version == 4 and not (pool and pool.allow_last_ip):
        message = f"{row.first} is the broadcast address of {leaf.name}"
        _judge(row, "refused", "broadcast_address", message)


def _refuse_duplicate(
    seen: dict[tuple[Any, ...], RegisterRow], key: tuple[Any, ...], row: RegisterRow
) -> None:
    if row.verdict:
        return
    earlier = seen.setdefault(key, row)
    if earlier is not row:
        where = f"line {earlier.line}" + (f" of {earlier.file}" if earlier.file else "")
        message = f"{row.first} is in the import already, in {where}"
        _judge(row, "conflict", "duplicate_in_file", message)


def _compare_ranges(rows: list[RegisterRow]) -> None:
    """Leave out reserved ranges inside others of the import, and refuse those that overlap in part."""
    by_space: dict[Space, list[RegisterRow]] = defaultdict(list)
    for row in rows:
        by_space[_space(row)].append(row)
    for same in by_space.values():
        same.sort(key=lambda row: (int(row.first), -int(row.last)))
        around = same[0]
        for row in same[1:]:
            if int(row.last) <= int(around.last):
                message = f"the reserved range {around.first}-{around.last} of the import has it"
                _judge(row, "unchanged", "inside_range", message)
            elif int(row.first) <= int(around.last):
                message = f"overlaps the reserved range {around.first}-{around.last} of the import"
                _judge(row, "conflict", "ranges_overlap", message)
            else:
                around = row


def _judge(row: RegisterRow, verdict: str, code: str, message: str) -> None:
    if not row.verdict:
        row.verdict = verdict
        row.found = [*row.found, {"code": code, "message": message}]
