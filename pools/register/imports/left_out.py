"""Addresses that a source has in use although their row is not imported: a reserved range withholds them.

Rule `left-out-rows-keep-their-addresses`. A row may be left out by a user, invalid, or in conflict. What it names in a
pool, of the register or of the import, becomes a row of its own that follows from it: a reserved range, which the commit writes
and the undo removes, and which a mirror releases when the source has nothing there any more. Of a row that cannot be
parsed, every address that its text names counts.
"""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from ipaddress import IPv4Address, IPv6Address
from itertools import pairwise
from operator import itemgetter

from pools.core.register_import import columns, parsing
from pools.core.register_import.parsing import HELD, POOL, RESERVED
from pools.models import RegisterImport, RegisterRow
from pools.models.imports import RowStatus
from pools.register.imports import comparison
from pools.register.imports.places import Level, Place, Space, edges

# Nobody uses these addresses, or no pool hands them out.
_NOT_IN_USE = {"not_in_use", "network_address", "broadcast_address"}
_LONGEST_LABEL = 200
_ADDRESSES = {4: IPv4Address, 6: IPv6Address}

# Why addresses are withheld for a row that is imported.
NAMED, UTILIZED = "named beside", "marked as utilized"

Spans = list[tuple[int, int]]


@dataclass(frozen=True)
class Use:
    """Addresses of one space that a row has in use and does not get."""

    row: RegisterRow
    space: Space
    first: int
    last: int
    reason: str = ""  # but for a row that is not imported


def is_left_out(row: RegisterRow) -> bool:
    """Return True for a row that is not imported, whatever is in the register."""
    return row.skipped or row.verdict == "invalid"


def uses(row: RegisterRow) -> Iterator[Use]:
    """Yield what a row that is not imported has in use."""
    if not _NOT_IN_USE.intersection(reason["code"] for reason in row.problems):
        for version, first, last in spans(row):
            yield Use(row, (row.cluster_id or 0, row.space_name, version), first, last)


def mentions(row: RegisterRow) -> Iterator[Use]:
    """Yield what a row names beside its own addresses: nobody may have it, but who has a row of it."""
    text = row.texts.get(columns.MENTIONS, "")
    spans = parsing.find_spans(columns.ADDRESS, {columns.ADDRESS: text}) if text else ()
    for version, first, last in spans:
        space = (row.cluster_id or 0, row.space_name, version)
        yield Use(row, space, first, last, NAMED)


def utilized(row: RegisterRow) -> Iterator[Use]:
    """Yield the prefix of a pool that the source has marked as full: it hands out none of its addresses."""
    if row.target == POOL and "mark_utilized" in row.details:
        space = (row.cluster_id or 0, row.space_name, row.first.version)
        yield Use(row, space, int(row.first), int(row.last), UTILIZED)


def spans(row: RegisterRow) -> list[tuple[int, int, int]]:
    """Return (IP family, first, last) of each span of addresses that a row names."""
    if row.first is not None:
        return [(row.first.version, int(row.first), int(row.last))]
    return parsing.find_spans(row.kind, row.texts)


def withhold(
    in_use: Sequence[Use],
    levels: Mapping[Space, Level],
    imported: Sequence[tuple[RegisterRow, Level]],
    number: int,
) -> list[RegisterRow]:
    """Return a row for each span that a pool has and would hand out, numbered from `number`.

    `imported` are the addresses and ranges of the import with their levels.
    """
    rows_of_uses = {id(use.row) for use in in_use if not use.reason}
    held = {
        (id(level), int(row.first))
        for row, level in imported
        if _is_new(row, HELD) and id(row) not in rows_of_uses
    }
    by_pool: dict[int, list[Use]] = defaultdict(list)
    pools: dict[int, tuple[Place, Level]] = {}
    for use in in_use:
        level = levels.get(use.space)
        if level is None or (use.first == use.last and (id(level), use.first) in held):
            continue
        for place in _pools(use, level):
            pools[id(place)] = place, level
            by_pool[id(place)].append(use)
    reserved = _reserved(imported)
    registered = comparison.ranges_of_cidrs(
        place.cidr.pk for place, _ in pools.values() if place.cidr
    )
    rows = []
    for key, same in by_pool.items():
        place, level = pools[key]
        others = reserved.get(id(level), [])
        ranges = registered.get(place.cidr.pk, []) if place.cidr else []
        known = [(int(present.first), int(present.last)) for present in ranges]
        for use in _disjoint(same, place):
            rows += [_row(use, place, *piece) for piece in _pieces(use, others, known)]
    for position, row in enumerate(rows):
        row.number = number + position
    return rows


def _pools(use: Use, level: Level) -> Iterator[Place]:
    for place in level.pools_between(use.first, use.last):
        # Who names a network address means the network.
        is_network = use.first == use.last and use.first in edges(place, use.space[2])
        if not (use.reason and is_network) and (place.cidr is None or not place.cidr.closed):
            yield place


def of_other_holders(
    located: Iterable[tuple[RegisterRow, Level]], register_import: RegisterImport
) -> Iterator[Use]:
    """Yield the addresses that somebody else has, or that cool: their rows are in conflict, and nobody gets them later."""
    rows = [row for row, _ in located if row.pool_cidr_id and _is_new(row, HELD)]
    comparison.compare(register_import, rows)
    for row in rows:
        if row.status == RowStatus.CONFLICT:
            yield from uses(row)


def _is_new(row: RegisterRow, target: str) -> bool:
    return row.target == target and not row.verdict


def _reserved(imported: Iterable[tuple[RegisterRow, Level]]) -> dict[int, Spans]:
    """Return the spans of the ranges of the import, by the id of their level."""
    ranges: dict[int, Spans] = defaultdict(list)
    for row, level in imported:
        if _is_new(row, RESERVED):
            ranges[id(level)].append((int(row.first), int(row.last)))
    return {key: sorted(spans) for key, spans in ranges.items()}


def _disjoint(same: Iterable[Use], place: Place) -> Iterator[Use]:
    """Yield the parts of the uses inside the pool, each address once; the widest use comes first."""
    end = place.first - 1
    for use in sorted(same, key=lambda use: (use.first, -use.last)):
        first, last = max(use.first, end + 1), min(use.last, place.last)
        if first <= last:
            yield replace(use, first=first, last=last)
            end = last


def _pieces(use: Use, others: Spans, registered: Spans) -> Iterator[tuple[int, int]]:
    """Yield the pieces of a use that no range of the import has, cut where ranges of the register begin and end."""
    others, registered = _overlapping(others, use), _overlapping(registered, use)
    cuts = {use.first, use.last + 1}
    for first, last in (*others, *registered):
        cuts |= {cut for cut in (first, last + 1) if use.first < cut <= use.last}
    ends = sorted(cuts)
    for first, behind in pairwise(ends):
        index = bisect_right(others, first, key=itemgetter(0)) - 1
        if index < 0 or others[index][1] < first:
            yield first, behind - 1


def _overlapping(ranges: Spans, use: Use) -> Spans:
    """Return those of sorted, disjoint spans that have addresses of a use."""
    begin = bisect_right(ranges, use.first, key=itemgetter(0))
    end = bisect_right(ranges, use.last, key=itemgetter(0))
    return [span for span in ranges[max(begin - 1, 0) : end] if span[1] >= use.first]


def _row(use: Use, place: Place, first: int, last: int) -> RegisterRow:
    source, (cluster_id, space_name, version) = use.row, use.space
    address = _ADDRESSES[version]
    ends = {"first": str(address(first)), "last": str(address(last))}
    label = source.holder_id or source.description or str(source.cidr or "")
    row = RegisterRow(
        source_import_id=source.source_import_id,
        file=source.file,
        line=source.line,
        texts={**ends, "left_out": "yes"},
        values={
            "kind": "range",
            "target": RESERVED,
            "cluster_id": cluster_id,
            "space_name": space_name,
            **ends,
            "details": {"left_out": "yes"},
            "description": f"{use.reason or 'in use, not imported'}: {label}"[
                :_LONGEST_LABEL
            ].removesuffix(": "),
        },
    )
    message = f"row {source.line} has it in use and is left out: nobody gets it"
    if use.reason == NAMED:
        message = f"row {source.line} names it, and no row has it: nobody gets it"
    elif use.reason == UTILIZED:
        message = f"row {source.line} says that its prefix is full: nobody gets it"
    row.problems = [{"code": "left_out", "message": message}]
    row.pool_name = place.pool_name
    row.pool_cidr_id = place.cidr.pk if place.cidr else None
    row.pool_row = place.row.number if place.row and place.cidr is None else None
    return row
