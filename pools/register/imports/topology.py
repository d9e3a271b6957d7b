"""Which prefixes become containers, which become pools, and in which pool each address lies.

A prefix with the status container, or with another prefix or a registered CIDR inside, becomes a container;
every other one becomes a pool. Addresses directly in a prefix that became a container by what is inside get a pool
of the parts of it that hold them (pools/register/imports/parts.py). All rows of an import are looked at
together, with the CIDRs that the register has already: it is arithmetic on sorted spans, in memory.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pools.core.register_import.parsing import CONTAINER, HELD, POOL, RESERVED
from pools.models import PoolCIDR, RegisterRecord, RegisterRow
from pools.models.register_imports import RegisterTarget
from pools.platform import database
from pools.sql import statements

Space = tuple[int, str, int]  # cluster id, name of the address space, IP family
HOST = {4: 32, 6: 128}


@dataclass
class Place:
    """A prefix of an import, or a CIDR of the register, as a span of addresses.

    `part` is True for a part of a prefix with other prefixes inside, `divided` for such a prefix. `part_of` is the
    prefix of a part that the register has, `in_use` is True if users hold blocks there. `rest_for` is set for what is
    left of such a part: the row of a prefix that divides it.
    """

    first: int
    last: int
    row: RegisterRow | None = None
    cidr: PoolCIDR | None = None
    part: bool = False
    part_of: str = ""
    rest_for: RegisterRow | None = None
    in_use: bool = False
    parent: Place | None = None
    has_children: bool = False
    divided: bool = False

    @property
    def name(self) -> str:
        return str(self.row.cidr if self.row else self.cidr)

    @property
    def is_pool(self) -> bool:
        return self.cidr is not None or (self.row is not None and self.row.target == POOL)


@dataclass
class Level:
    """The places of one address space and family in the order of a tree."""

    places: list[Place] = field(default_factory=list)
    firsts: list[int] = field(default_factory=list)

    def add(self, places: Iterable[Place]) -> None:
        self.places = sorted([*self.places, *places], key=lambda place: (place.first, -place.last))
        self.firsts = [place.first for place in self.places]

    def inside(self, around: Place) -> list[Place]:
        """Return the places in a place."""
        first = bisect_left(self.firsts, around.first)
        places = self.places[first : bisect_right(self.firsts, around.last)]
        return [place for place in places if place.last <= around.last and place is not around]

    def replace(self, removed: Iterable[Place], added: Iterable[Place]) -> None:
        gone = {id(place) for place in removed}
        self.places = [place for place in self.places if id(place) not in gone]
        self.add(added)

    def innermost(self, number: int) -> Place | None:
        """Return the smallest place that has an address."""
        index = bisect_right(self.firsts, number) - 1
        place = self.places[index] if index >= 0 else None
        while place is not None and place.last < number:
            place = place.parent
        return place

    def gap(self, around: Place, number: int) -> tuple[int, int]:
        """Return the first and the last address of the free space in a place around an address in it."""
        index = bisect_right(self.firsts, number)
        low, high = around.first, around.last
        if index < len(self.places):
            high = min(high, self.firsts[index] - 1)
        place: Place | None = self.places[index - 1]
        while place is not None and place is not around:
            low, place = place.last + 1, place.parent
        return low, high


Divide = Callable[
    [Sequence[tuple[RegisterRow, "Level"]], Iterable["Level"], int], list[RegisterRow]
]
DivideParts = Callable[[Level], None]


def resolve(
    rows: Sequence[RegisterRow],
    other_clusters: Sequence[int] = (),
    divide: Divide | None = None,
    divide_parts: DivideParts | None = None,
) -> list[RegisterRow]:
    """Set target, pool and the problems of position of all rows that could be parsed and are not skipped.

    An address that its own cluster has no prefix for is looked for in `other_clusters`. Returns the rows that
    `divide` adds (parts.divide). `divide_parts` gives prefixes their place in parts of the register; without it
    they are in conflict.
    """
    prefixes: dict[Space, list[Place]] = defaultdict(list)
    others: list[RegisterRow] = []
    for row in rows:
        if row.skipped or row.verdict == "refused":
            continue
        if row.kind == "prefix":
            part = "part_of" in row.details
            prefixes[_space(row)].append(Place(int(row.first), int(row.last), row, part=part))
        else:
            others.append(row)
    spaces = {*prefixes, *map(_space, others)}
    spaces |= {(cluster, *space[1:]) for cluster in other_clusters for space in spaces}
    for space, place in _registered(spaces):
        prefixes[space].append(place)
    levels = {space: _build(places, divide_parts) for space, places in prefixes.items()}
    located = [(row, _level_of(row, levels, other_clusters)) for row in others]
    added: list[RegisterRow] = []
    if divide is not None:
        added = divide(located, levels.values(), max((row.number for row in rows), default=0) + 1)
        located += [(row, levels[_space(row)]) for row in added if row.kind != "prefix"]
    seen: dict[tuple[Any, ...], RegisterRow] = {}
    for row, level in located:
        _locate(row, level)
        if row.target == HELD:
            _refuse_duplicate(seen, (*_space(row), row.first), row)
    _compare_ranges([row for row, _ in located if row.target == RESERVED and not row.verdict])
    return added


def _level_of(
    row: RegisterRow, levels: Mapping[Space, Level], other_clusters: Sequence[int]
) -> Level:
    """Return the level of the row's address space, or move the row to another cluster that has its prefix."""
    own = levels.get(_space(row)) or Level()
    if row.texts.get("cluster") or not other_clusters:
        return own
    space = _space(row)[1:]
    options = [(row.cluster_id, own)]
    options += [(pk, levels[pk, *space]) for pk in other_clusters if (pk, *space) in levels]
    places = [(pk, level, level.innermost(int(row.first))) for pk, level in options]
    for kind in ("is_pool", "divided"):
        for pk, level, place in places:
            if place is not None and getattr(place, kind):
                row.cluster_id = pk
                return level
    return own


def _space(row: RegisterRow) -> Space:
    return row.cluster_id or 0, row.space_name, row.first.version


def _registered(spaces: Iterable[Space]) -> Iterator[tuple[Space, Place]]:
    """Yield the CIDRs that the pools of these address spaces have."""
    clusters = {cluster for cluster, _, _ in spaces}
    records = RegisterRecord.objects.filter(
        space__cluster__in=clusters, target=RegisterTarget.POOL, details__has_key="part_of"
    )
    parts = {
        (space_id, first, last): prefix
        for space_id, first, last, prefix in records.values_list(
            "space_id", "first", "last", "details__part_of"
        )
    }
    cidrs = PoolCIDR.objects.filter(space__cluster__in=clusters).select_related("pool", "space")
    rows = database.rows(_PARTS_OF_USERS, {"clusters": sorted(clusters)}) if parts else []
    of_users = {pk for (pk,) in rows}
    for cidr in cidrs:
        space = (cidr.space.cluster_id, cidr.space.name, cidr.cidr.version)
        if space in spaces:
            first, last = cidr.cidr.network_address, cidr.cidr.broadcast_address
            part_of = parts.get((cidr.space_id, first, last), "")
            yield (
                space,
                Place(
                    int(first),
                    int(last),
                    cidr=cidr,
                    part=bool(part_of),
                    part_of=part_of,
                    in_use=cidr.pk in of_users,
                ),
            )


_PARTS_OF_USERS = statements.read("pools/parts_of_users")


def _build(places: list[Place], divide_parts: DivideParts | None) -> Level:
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
            may_divide = divide_parts is not None and around.part and around.row is None
            if around.cidr is not None and place.row is not None and not may_divide:
                judge(place.row, "conflict", "cidr_overlap", _overlap(place, around))
                continue
            around.has_children = True
            place.parent = around
        stack.append(place)
        distinct.append(place)
    level = _sort_into_level(distinct)
    if divide_parts is not None:
        divide_parts(level)
    return level


def _overlap(place: Place, around: Place) -> str:
    pool = around.cidr.pool if around.cidr else None
    return (
        f"{place.name} lies in {around.name} of the pool {pool}, which is no container:"
        f" to import it, release what {around.name} holds and remove this CIDR from the pool"
    )


def _meet_equal(around: Place, place: Place) -> None:
    """Note that a prefix is named a second time: by the register and a row, or by two rows."""
    if place.row is None:
        return
    if around.row is not None:
        if _gives_way(around.row):
            around.row, place.row = place.row, around.row
        message = f"row {around.row.line} of the import has the prefix {place.name} already"
        verdict = "unchanged" if _gives_way(place.row) else "conflict"
        judge(place.row, verdict, "duplicate_in_file", message)
    else:
        around.row = place.row
        around.part = place.part


def _gives_way(row: RegisterRow) -> bool:
    """Return True for the prefix above a table of addresses, and for an aggregate: another row may have it, too."""
    return "heading" in row.texts or "rir" in row.texts


def _sort_into_level(places: Iterable[Place]) -> Level:
    level = Level()
    level.add(places)
    for place in level.places:
        row = place.row
        if row is not None:
            place.divided = place.has_children and row.target != CONTAINER
            is_container = place.has_children or row.target == CONTAINER
            row.target = CONTAINER if is_container and place.cidr is None else row.target or POOL
            if row.target == POOL and row.details.get("status") == "active":
                del row.details[
                    "status"
                ]  # that of every pool; a container goes back to NetBox with its own
            row.pool_cidr_id = place.cidr.pk if place.cidr else None
            row.pool_row = None
    return level


def _locate(row: RegisterRow, level: Level) -> None:
    """Find the pool of an address or a range, and refuse what no pool can hold."""
    row.pool_row = row.pool_cidr_id = None
    place = level.innermost(int(row.first))
    if place is None:
        message = f"no prefix of the import and no pool of the register has {_span(row)}"
        judge(row, "refused", "outside_every_prefix", message)
    elif not place.is_pool:
        if place.divided and row.target == HELD:
            _check_edges(row, place)
        message = (
            f"{_span(row)} lies in the network container {place.name}, and no prefix inside it has it:"
            " add such a prefix, or give the container the status active"
        )
        judge(row, "refused", "in_container", message)
    elif int(row.last) > place.last:
        message = f"the range does not lie in one prefix: {place.name} ends before {row.last}"
        judge(row, "refused", "range_outside_cidr", message)
    else:
        row.pool_row = place.row.number if place.row and place.cidr is None else None
        row.pool_cidr_id = place.cidr.pk if place.cidr else None
        _check_pool(row, place)
        if row.target == HELD:
            _check_edges(row, place)


def _span(row: RegisterRow) -> str:
    return str(row.first) if row.first == row.last else f"{row.first}-{row.last}"


def _check_pool(row: RegisterRow, leaf: Place) -> None:
    if leaf.cidr is None:
        return
    pool, size = leaf.cidr.pool, leaf.cidr.pool.mask_size(row.first.version)
    if leaf.cidr.closed:
        message = (
            f"{leaf.cidr} of the pool {pool} is being removed: nothing new is allocated from it"
        )
        judge(row, "conflict", "cidr_closed", message)
    elif row.target == HELD and size != HOST[row.first.version]:
        message = f"the pool {pool} allocates blocks of /{size}, no single addresses"
        judge(row, "conflict", "mask_size", message)


def _check_edges(row: RegisterRow, leaf: Place) -> None:
    """Refuse what no host can have: network and broadcast address, and IPv6's subnet-router anycast address."""
    place = leaf
    if leaf.part:  # has the edges of the prefix that it is a part of
        if leaf.parent is None:
            return
        place = leaf.parent
    pool = leaf.cidr.pool if leaf.cidr and not leaf.part else None
    allowed = place.row is not None and pool is None and "is_pool" in place.row.details
    number = int(row.first)
    if allowed or number not in edges(place, row.first.version):
        return
    if number == place.first and not (pool and pool.allow_first_ip):
        message = (
            f"{row.first} is the {edge_name(place, number, row.first.version)} of {place.name}"
        )
        judge(row, "refused", "network_address", message)
    elif number == place.last and not (pool and pool.allow_last_ip):
        message = (
            f"{row.first} is the {edge_name(place, number, row.first.version)} of {place.name}"
        )
        judge(row, "refused", "broadcast_address", message)


def edges(place: Place, version: int) -> tuple[int, ...]:
    """Return the addresses of a network that no host can have; RFC 3021, RFC 6164: of two addresses both can be used."""
    if place.last - place.first < 2:
        return ()
    return (place.first, place.last) if version == 4 else (place.first,)


def edge_name(place: Place, number: int, version: int) -> str:
    if number == place.last:
        return "broadcast address"
    return "network address" if version == 4 else "subnet-router anycast address"


def _refuse_duplicate(
    seen: dict[tuple[Any, ...], RegisterRow], key: tuple[Any, ...], row: RegisterRow
) -> None:
    if row.verdict:
        return
    earlier = seen.setdefault(key, row)
    if earlier is not row:
        where = f"line {earlier.line}" + (f" of {earlier.file}" if earlier.file else "")
        message = f"{row.first} is in the import already, in {where}"
        judge(row, "conflict", "duplicate_in_file", message)


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
                judge(row, "unchanged", "inside_range", message)
            elif int(row.first) <= int(around.last):
                message = f"overlaps the reserved range {around.first}-{around.last} of the import"
                judge(row, "conflict", "ranges_overlap", message)
            else:
                around = row


def judge(row: RegisterRow, verdict: str, code: str, message: str) -> None:
    if not row.verdict:
        row.verdict = verdict
        row.found = [*row.found, {"code": code, "message": message}]
