"""Checks of the register that need the arithmetic of blocks, or the columns of each model (pools/platform/checks.py)."""

import heapq
import json
import socket
from collections.abc import Iterable, Iterator
from typing import Any

import pghistory

from pools.core import blocks, errors
from pools.core.blocks import IndexSet, Span
from pools.models import BlockEvent, Pool, PoolCIDR
from pools.platform import checks, events
from pools.register import usage
from pools.register.allocator import requests, window
from pools.sql import statements


def free_space() -> Iterator[str]:
    """Yield the blocks that can never be allocated, that could be twice, or although they must not be.

    Each block that no reserved range touches has a row or is in one free span, and no other block is in a span.
    """
    for cidr in _cidrs():
        for meaning, spans in compare_free_space(cidr).items():
            for span in spans:
                blocks_text = _describe(window.layout(cidr), span)
                yield f"{cidr} of pool {cidr.pool}: {blocks_text} {meaning}"


def compare_free_space(cidr: PoolCIDR) -> dict[str, list[Span]]:
    """Return what is wrong -> the spans of blocks with which it is."""
    allocatable, free = _allocatable(cidr), _free_spans(cidr)
    recorded: list[Span] = []  # with a row or in a free span; as few spans as possible
    doubled: list[Span] = []
    for span in heapq.merge(free, _block_rows(cidr), key=lambda span: span.first):
        if recorded and span.first <= recorded[-1].last + 1:
            before = recorded[-1]
            if span.first <= before.last:
                doubled.append(Span(span.first, min(span.last, before.last)))
            recorded[-1] = Span(before.first, max(span.last, before.last))
        else:
            recorded.append(span)
    return {
        "can never be allocated: no row and no free span contains them": blocks.subtract(
            allocatable, recorded
        ),
        "could be allocated twice: more than one free span or row contains them": blocks.merge(doubled),
        "could be allocated although the pool's allocatable space does not contain them": blocks.subtract(
            free, allocatable
        ),
    }  # fmt: skip


def reserved_blocks() -> Iterator[str]:
    """Yield blocks that could be allocated although a range or a removed CIDR reserves them, and the reverse."""
    for cidr in _cidrs():
        grid = window.layout(cidr)
        reserved = blocks.subtract([Span(0, grid.count - 1)], _allocatable(cidr))
        for span in reserved:
            ends = {"first": str(grid.block_at(span.first)), "last": str(grid.block_at(span.last))}
            for _, text, state in checks.rows(_UNMARKED, {"space": cidr.space_id, **ends}):
                yield f"Block {text} of pool {cidr.pool} ({state}) can be allocated although it is reserved"
        index_set = IndexSet(reserved)
        for span in _block_rows(cidr, "AND withheld AND state IN ('held', 'cooling')"):
            if not index_set.contains_span(span):
                block = grid.block_at(span.first)
                yield f"Block {block} of pool {cidr.pool} is lost with its release: it is withheld, and not reserved"


_UNMARKED = statements.read("pools/unmarked_blocks")


def counts() -> Iterator[str]:
    """Yield pools whose held, cooling, reserved and free blocks do not sum to the capacity."""
    counted = {(pool, family): numbers for pool, family, *numbers in checks.rows(_COUNT_BLOCKS)}
    for pool in Pool.objects.select_related("cluster").order_by("pk").iterator(chunk_size=500):
        for family, shown in usage.pool_usage(pool).items():
            held, cooling = counted.get((pool.pk, family), (0, 0))
            free = shown.capacity - held - cooling - shown.reserved
            if free < 0 or (shown.held, shown.cooling, shown.free) != (held, cooling, free):
                yield (
                    f"Pool {pool}, IPv{family}: {held} held and {cooling} cooling blocks; the usage shows {shown.held},"
                    f" {shown.cooling}, {shown.reserved} reserved and {shown.free} free of {shown.capacity}"
                )


# A separate statement, independent of the one that pages use (pools/register/usage.py).
_COUNT_BLOCKS = """
    SELECT pool_id, family, count(*) FILTER (WHERE state = 'held'),
        count(*) FILTER (WHERE state = 'cooling' AND available_from > ipam_now())
    FROM pools_block WHERE state IN ('held', 'cooling') GROUP BY pool_id, family
"""


def pending_requests() -> Iterator[str]:
    """Yield pending requests that cannot be retried."""
    statement = "SELECT id, demand::text FROM pools_allocationrequest WHERE state = 'pending'"
    for pk, demand_text in checks.rows(statement):
        try:
            requests.demand_from_json(json.loads(demand_text))
        except (KeyError, TypeError, ValueError, errors.IpamError):
            yield f"Request {pk} is pending, but its demand cannot be read: it can never be retried"


def row_history() -> Iterator[str]:
    """Yield rows that differ from their last events: changes past the triggers leave no event.

    Events that the retention has deleted do not matter: it deletes the events of a row oldest first.
    """
    for log in events.event_models().values():
        recorded = {
            type(tracker)
            for tracker in log.pgh_trackers
            if isinstance(tracker, pghistory.InsertEvent | pghistory.DeleteEvent)
            and tracker.condition is None
        }
        if log is not BlockEvent and len(recorded) == 2:
            yield from (text for (text,) in checks.rows(_row_history(log)))


def _row_history(log: Any) -> str:
    """Return the statement that finds rows that differ from their last events.

    A row without any event is reported if its id is higher than the id of a row whose creation is in
    the log: rows with lower ids may be older than the log or the retention.
    """
    table = log.pgh_tracked_model._meta
    columns = [field.column for field in log._meta.concrete_fields if field.name[:4] != "pgh_"]
    differing = ", ".join(
        f"""CASE WHEN t."{column}" IS DISTINCT FROM e."{column}" THEN '{column}' END"""
        for column in columns
    )
    key, title = f't."{table.pk.column}"', table.verbose_name.replace("'", "''")
    return f"""
        WITH last AS (SELECT pgh_obj_id, max(pgh_id) AS pgh_id FROM {log._meta.db_table} GROUP BY 1),
        first AS (SELECT min(pgh_obj_id) AS id FROM {log._meta.db_table}
            WHERE pgh_label = 'created' AND pgh_created_at > (
                SELECT COALESCE(max(newest_at) + interval '1 day', '-infinity')
                FROM pools_auditsegment WHERE purged_at IS NOT NULL))
        SELECT 'The {title} ' || id || ': ' || why FROM (
            SELECT COALESCE({key}, l.pgh_obj_id) AS id, CASE
                WHEN e.pgh_id IS NULL THEN
                    CASE WHEN {key} > (SELECT id FROM first) THEN 'it has no event' END
                WHEN {key} IS NULL THEN
                    CASE WHEN e.pgh_label <> 'deleted' THEN 'it was deleted without an event' END
                WHEN e.pgh_label = 'deleted' THEN 'it exists, but its last event is its deletion'
                ELSE 'it differs from its last event: ' || NULLIF(concat_ws(', ', {differing}), '')
                END AS why
            FROM {table.db_table} t FULL JOIN (last l JOIN {log._meta.db_table} e USING (pgh_id))
                ON l.pgh_obj_id = {key}
        ) d WHERE why IS NOT NULL ORDER BY id
    """  # noqa: S608  # names of tables and columns of the models


def _cidrs() -> Iterable[PoolCIDR]:
    rows = PoolCIDR.objects.select_related("pool__cluster").prefetch_related("reserved_ranges")
    return rows.order_by("pool_id", "pk").iterator(chunk_size=500)


def _allocatable(cidr: PoolCIDR) -> list[Span]:
    return [] if cidr.closed else window.layout(cidr).allocatable(window.reserved_ranges(cidr))


def _free_spans(cidr: PoolCIDR) -> list[Span]:
    statement = "SELECT first, last FROM pools_freespan WHERE pool_cidr_id = %s ORDER BY first"
    return [Span(int(first), int(last)) for first, last in checks.rows(statement, [cidr.pk])]


def _block_rows(cidr: PoolCIDR, condition: str = "") -> Iterator[Span]:
    """Yield the blocks of a CIDR with a row, in order, each once (another check reports two rows of one block)."""
    grid = window.layout(cidr)
    base, shift = int(cidr.cidr.network_address), cidr.cidr.max_prefixlen - grid.mask_size
    family = socket.AF_INET if cidr.cidr.version == 4 else socket.AF_INET6
    values = [
        cidr.space_id,
        str(grid.block_at(0)),
        str(grid.block_at(grid.count - 1)),
        grid.mask_size,
    ]
    statement = f"""
        SELECT DISTINCT cidr, host(cidr) FROM pools_block
        WHERE space_id = %s AND cidr >= %s::cidr AND cidr <= %s::cidr AND masklen(cidr) = %s {condition}
        ORDER BY cidr
    """  # noqa: S608  # our own condition
    for _, host in checks.rows(statement, values):
        index = (int.from_bytes(socket.inet_pton(family, host), "big") - base) >> shift
        yield Span(index, index)


def _describe(grid: blocks.Layout, span: Span) -> str:
    if span.last >= grid.count:
        return f"blocks beyond its end (index {span.first} to {span.last})"
    first = str(grid.block_at(span.first))
    return (
        f"block {first}"
        if span.size == 1
        else f"{span.size} blocks from {first} to {grid.block_at(span.last)}"
    )


CHECKS: dict[str, checks.Check] = {
    **checks.of_files("pools.sql"),
    "counts": counts,
    "free_space": free_space,
    "pending_requests": pending_requests,
    "reserved_blocks": reserved_blocks,
    "row_history": row_history,
}
