"""Leaks as they are told: in lists, reports and exports, with why in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from django.db.models import QuerySet

from pools.core import block_fields
from pools.models import Block, Leak
from pools.register.leaks import detection
from pools.register.leaks.reclaim import ReclaimResult

CHUNK = 2000

Shape = dict[str, Any]


def why(row: Mapping[str, Any]) -> str:
    """What was observed, in words."""
    holder = f"{row['holder_kind']} {row['holder_id']}"
    if row["source"] == detection.TOOLING:
        observation = f"Tooling did not name {holder}"
    else:
        observation = f"{holder} was not among the {row['source']} of the cluster"
    count = row["observations"]
    times = "once" if count == 1 else f"{count} times in a row"
    return f"{observation}, {times}."


def shapes(rows: Sequence[Mapping[str, Any]]) -> list[Shape]:
    """Rows of `leaks.current()`, read by `.values()`, for people and programs; two statements."""
    block_rows = Block.objects.filter(pk__in={row["block_id"] for row in rows})
    blocks = {block.pk: block for block in block_rows.select_related("pool__cluster")}
    return [_shape(row, blocks[row["block_id"]]) for row in rows if row["block_id"] in blocks]


def _shape(row: Mapping[str, Any], block: Block) -> Shape:
    return {
        "id": row["id"],
        "block_id": block.pk,
        "cidr": str(block.cidr),
        "address": block_fields.host_address(str(block.cidr)),
        "pool": block.pool.name,
        "pool_id": block.pool_id,
        "cluster": block.pool.cluster.name,
        "holder": {"kind": row["holder_kind"], "id": row["holder_id"], "uid": row["holder_uid"]},
        "org": block.org,
        "env": block.env,
        "state": "leaked" if row["confirmed_at"] else "suspected",
        "source": row["source"],
        "why": why(row),
        "allocated_at": block_fields.time(row["allocated_at"]),
        "missed_at": block_fields.time(row["missed_at"]),
        "observed_at": block_fields.time(row["observed_at"]),
        "observations": row["observations"],
        "confirmed_at": block_fields.time(row["confirmed_at"]),
    }


def every(rows: QuerySet[Leak]) -> Iterator[Shape]:
    """All of them, read in parts."""
    leaks = rows.order_by("id").values().iterator(chunk_size=CHUNK)
    while part := list(islice(leaks, CHUNK)):
        yield from shapes(part)


def outcome(result: ReclaimResult) -> str:
    """One word for what came of a reclaim."""
    if result.error:
        return "refused"
    if result.would:
        return "would_reclaim"
    return "repeated" if result.repeated else "reclaimed"
