"""Leaks as rows of lists, reports and exports, with the reason of each in words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from django.db.models import QuerySet
from django.utils.translation import ngettext

from pools.core import block_fields
from pools.models import Block, Leak
from pools.register.leaks import detection
from pools.register.leaks.reclaim import ReclaimResult

CHUNK = 2000

LeakRow = dict[str, Any]


def describe_observation(row: Mapping[str, Any]) -> str:
    """Return a sentence that says which observations missed the holder."""
    holder = f"{row['holder_kind']} {row['holder_id']}"
    count = row["observations"]
    if row["source"] == detection.TOOLING:
        return ngettext(
            "%(holder)s is missing from the last inventory report.",
            "%(holder)s is missing from the last %(count)d inventory reports.",
            count,
        ) % {"holder": holder, "count": count}
    return ngettext(
        "%(holder)s is missing from the last complete list of %(source)s.",
        "%(holder)s is missing from the last %(count)d complete lists of %(source)s.",
        count,
    ) % {"holder": holder, "source": row["source"], "count": count}


def leak_rows(rows: Sequence[Mapping[str, Any]]) -> list[LeakRow]:
    """Return the rows of `detection.current_leaks().values()` with their blocks; needs two queries."""
    block_rows = Block.objects.filter(pk__in={row["block_id"] for row in rows})
    blocks = {block.pk: block for block in block_rows.select_related("pool__cluster")}
    return [_leak_row(row, blocks[row["block_id"]]) for row in rows if row["block_id"] in blocks]


def _leak_row(row: Mapping[str, Any], block: Block) -> LeakRow:
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
        "why": describe_observation(row),
        "allocated_at": block_fields.time(row["allocated_at"]),
        "missed_at": block_fields.time(row["missed_at"]),
        "observed_at": block_fields.time(row["observed_at"]),
        "observations": row["observations"],
        "confirmed_at": block_fields.time(row["confirmed_at"]),
    }


def iterate_leaks(rows: QuerySet[Leak]) -> Iterator[LeakRow]:
    """Yield all leaks of a queryset, read in chunks."""
    leaks = rows.order_by("id").values().iterator(chunk_size=CHUNK)
    while chunk := list(islice(leaks, CHUNK)):
        yield from leak_rows(chunk)


def outcome_code(result: ReclaimResult) -> str:
    """Return the result of a reclaim as a code: refused, would_reclaim, repeated or reclaimed."""
    if result.error:
        return "refused"
    if result.would_reclaim:
        return "would_reclaim"
    return "repeated" if result.repeated else "reclaimed"
