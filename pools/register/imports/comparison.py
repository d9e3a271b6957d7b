"""Rows of an import compared with what the register has at their place: status, reasons, object and former values.

New: the register has nothing there. Changed: it has the same object, with another description, organization or
detail. Unchanged: it has all of it. Conflict: it has something else there. Invalid: the row itself cannot be imported.
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC
from typing import Any

from django.db.models import Q

from pools.core.register_import.parsing import CONTAINER, HELD, POOL, RESERVED
from pools.models import (
    AddressSpace,
    Block,
    Clock,
    Container,
    Pool,
    PoolCIDR,
    RegisterImport,
    RegisterRecord,
    RegisterRow,
    ReservedRange,
)
from pools.models.attributes import ATTRIBUTES
from pools.models.blocks import BlockState
from pools.models.imports import RowStatus
from pools.platform import database

_REFUSED = {RowStatus.CONFLICT, RowStatus.INVALID, RowStatus.LEFT_OUT}


@dataclass
class Comparison:
    """What the register has at the place of a row: its object if `is_there`, or a conflict with it by code and message."""

    object_id: int | None = None
    differs: bool = False
    before: Mapping[str, Any] | None = None
    code: str = ""
    message: str = ""


def compare(register_import: RegisterImport, rows: Iterable[RegisterRow]) -> None:
    """Set the results of the rows that the register decides."""
    rows = [row for row in rows if not row.skipped and not row.verdict]
    register = _Register(register_import, rows)
    for row in rows:
        there = register.compare(row)
        # An undo that restores released objects changes none that is there again.
        changes = there.differs and row.status != RowStatus.RELEASED and not there.code
        row.object_id, row.before = there.object_id, there.before if changes else None
        row.reasons = [*row.problems]
        if there.code:
            row.status = RowStatus.CONFLICT
            row.reasons.insert(0, {"code": there.code, "message": there.message})
        elif there.object_id is None:
            row.status = RowStatus.NEW
        else:
            row.status = RowStatus.CHANGED if changes else RowStatus.UNCHANGED


def refuse(rows: Collection[RegisterRow]) -> None:
    """Set the results of the rows that the register does not decide, and refuse those whose prefix is not imported."""
    by_number = {row.number: row for row in rows}
    for row in rows:
        if row.skipped or row.verdict:
            row.status = RowStatus.LEFT_OUT if row.skipped else row.verdict
            row.reasons, row.object_id, row.before = row.problems, None, None
    for row in rows:
        prefix = by_number.get(row.pool_row or 0)
        if not (row.skipped or row.verdict) and prefix is not None and prefix.status in _REFUSED:
            message = (
                f"the prefix {prefix.values.get('cidr') or ''}, row {prefix.line}, is not imported"
            )
            row.status, row.object_id, row.before = RowStatus.INVALID, None, None
            row.reasons = [{"code": "pool_not_imported", "message": message}, *row.problems]


class _Register:
    """What the register has at the places of some rows; each table is read once."""

    def __init__(self, register_import: RegisterImport, rows: Collection[RegisterRow]) -> None:
        self._holder_kind = register_import.holder_kind
        self._source_id = register_import.netbox_source_id
        clusters = {row.cluster_id for row in rows}
        spaces = AddressSpace.objects.filter(cluster__in=clusters)
        self._spaces = {(space.cluster_id, space.name): space.pk for space in spaces}
        by_target: dict[str, list[RegisterRow]] = defaultdict(list)
        for row in rows:
            by_target[row.target].append(row)
        networks = {row.values["cidr"] for row in (*by_target[CONTAINER], *by_target[POOL])}
        self._containers = self._by_place(Container.objects.filter(cidr__in=networks))
        cidrs = PoolCIDR.objects.filter(cidr__in=networks).select_related("pool")
        self._cidrs = self._by_place(cidrs)
        names = {row.pool_name for row in by_target[POOL]}
        named = Pool.objects.filter(cluster__in=clusters, name__in=names)
        self._names = {*named.values_list("cluster", "name")}
        cooling = Q(state=BlockState.COOLING, available_from__gt=Clock())
        addresses = {row.values["cidr"] for row in by_target[HELD]}
        used = Block.objects.filter(Q(state=BlockState.HELD) | cooling, cidr__in=addresses)
        self._blocks = self._by_place(used)
        self._ranges = ranges_of_cidrs({row.pool_cidr_id or 0 for row in by_target[RESERVED]})
        firsts = {row.values["first"] for row in rows}
        records = RegisterRecord.objects.filter(space__in=self._spaces.values(), first__in=firsts)
        self._records = {
            (row.space_id, row.target, str(row.first), str(row.last)): row for row in records
        }
        self._elsewhere = _observed_elsewhere(by_target[POOL])
        self._compare: dict[str, Callable[[RegisterRow], Comparison]] = {
            CONTAINER: self._compare_container,
            POOL: self._compare_pool,
            HELD: self._compare_address,
            RESERVED: self._compare_range,
        }

    def compare(self, row: RegisterRow) -> Comparison:
        return self._compare[row.target](row)

    def _by_place(self, objects: Any) -> dict[tuple[int, str], Any]:
        found = objects.filter(space__in=self._spaces.values())
        return {(row.space_id, str(row.cidr)): row for row in found}

    def _place(self, row: RegisterRow) -> tuple[int, str]:
        return self._spaces.get((row.cluster_id, row.space_name), 0), row.values.get("cidr", "")

    def _record(self, row: RegisterRow) -> RegisterRecord | None:
        space = self._spaces.get((row.cluster_id, row.space_name), 0)
        return self._records.get((space, row.target, row.values["first"], row.values["last"]))

    def _compare_container(self, row: RegisterRow) -> Comparison:
        if cidr := self._cidrs.get(self._place(row)):
            message = (
                f"{cidr} is a CIDR of the pool {cidr.pool} in the register, no container: release what it holds and"
                " remove it from the pool, or leave this row out"
            )
            return Comparison(code="registered_as_pool", message=message)
        container, record = self._containers.get(self._place(row)), self._record(row)
        if container is None:
            return Comparison()
        details = record.details if record else None
        differs = (container.description, details or {}) != (row.description, row.details)
        before = _before(container, container.description, details)
        return Comparison(container.pk, differs, before)

    def _compare_pool(self, row: RegisterRow) -> Comparison:
        cidr, record = self._cidrs.get(self._place(row)), self._record(row)
        if cidr is not None:
            description = record.description if record else cidr.pool.description
            details = record.details if record else None
            differs = (description, details or {}) != (row.description, row.details)
            return Comparison(cidr.pk, differs, _before(cidr, description, details))
        network = row.values["cidr"]
        if (row.cluster_id, row.pool_name) in self._names:
            message = f"the cluster has a pool {row.pool_name} already, without {network}"
            return Comparison(code="already_exists", message=message)
        if row.number in self._elsewhere:
            name, other = self._elsewhere[row.number]
            message = f"{network} overlaps {other}, which the pool {name} has in the cluster"
            return Comparison(code="cidr_overlap", message=message)
        return Comparison()

    def _compare_address(self, row: RegisterRow) -> Comparison:
        block, record = self._blocks.get(self._place(row)), self._record(row)
        if block is None:
            return Comparison()
        if record is not None and record.holder_id != block.holder_id:
            record = None
        holder = (block.holder_kind, block.holder_id)
        is_same = holder == (self._holder_kind, row.holder_id)
        if block.state == BlockState.COOLING:
            end = block.available_from.astimezone(UTC)
            message = f"{row.first} cools until {end:%Y-%m-%d %H:%M UTC}, after {' '.join(holder)} held it"
            return Comparison() if is_same else Comparison(code="cooling_down", message=message)
        # What a mirror brought follows its source to another holder, until it has released it.
        follows = (
            record is not None
            and record.source_id is not None
            and record.source_id == self._source_id
            and block.holder_kind == self._holder_kind
            and row.status != RowStatus.RELEASED
        )
        if not (is_same or follows):
            message = f"{row.first} is held by {' '.join(holder)}"
            return Comparison(block.pk, code="already_allocated", message=message)
        description, details = (record.description, record.details) if record else (None, None)
        differs = (block.holder_id, block.org, description or "", details or {}) != (
            *(row.holder_id, row.org, row.description, row.details),
        )
        before = {"holder": block.holder_id, "org": block.org}
        before |= {"description": description, "details": details}
        return Comparison(block.pk, differs, before)

    def _compare_range(self, row: RegisterRow) -> Comparison:
        ranges = self._ranges.get(row.pool_cidr_id or 0, [])
        first, last = int(row.first), int(row.last)
        position = bisect_left(ranges, first, key=lambda present: int(present.last))
        if position == len(ranges) or int(ranges[position].first) > last:
            return Comparison()
        present = ranges[position]
        ends = int(present.first), int(present.last)
        if not (ends[0] <= first and ends[1] >= last):
            message = f"overlaps the reserved range {present.first}-{present.last} of the register"
            return Comparison(present.pk, code="ranges_overlap", message=message)
        # Only what an import brought follows its source.
        record = self._record(row) if ends == (first, last) else None
        if record is None:
            return Comparison(present.pk)
        differs = (record.description, record.details) != (row.description, row.details)
        before = {"description": record.description, "details": record.details}
        return Comparison(present.pk, differs, {**before, "reason": present.reason})


def _before(row: Any, description: str, details: Mapping[str, str] | None) -> dict[str, Any]:
    attributes = {name: getattr(row, name) for name in ATTRIBUTES}
    return {"description": description, "details": details, **attributes}


def ranges_of_cidrs(cidrs: Iterable[int]) -> Mapping[int, list[ReservedRange]]:
    """Return the reserved ranges of these CIDRs, which are disjoint, in their order."""
    ranges: dict[int, list[ReservedRange]] = defaultdict(list)
    for row in ReservedRange.objects.filter(pool_cidr__in=[*cidrs]).order_by("first"):
        ranges[row.pool_cidr_id].append(row)
    return ranges


def _observed_elsewhere(rows: Collection[RegisterRow]) -> dict[int, tuple[str, str]]:
    """Return the pool and the CIDR that a cluster's object has where a new pool would be, by the number of the row."""
    rows = [row for row in rows if not row.space_name]
    columns = zip(
        *((r.number, r.cluster_id, r.pool_name, r.values["cidr"]) for r in rows), strict=True
    )
    found = database.rows(_OBSERVED, [*map(list, columns)], prepare=False) if rows else []
    return {number: (name, cidr) for number, name, cidr in found}


_OBSERVED = """
    SELECT r.number, o.name, o.cidr::text
    FROM unnest(%s::int[], %s::bigint[], %s::text[], %s::cidr[]) AS r(number, cluster, pool, cidr)
    CROSS JOIN LATERAL ipam_observed_elsewhere(r.cluster, r.pool, r.cidr) o
    WHERE o.name IS NOT NULL
"""
