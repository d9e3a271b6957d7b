"""The state before and after events: rows of the event tables, never stored twice."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection

State = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """Columns of the object before and after the event; None where it did not exist."""

    before: State | None = None
    after: State | None = None


# For each event table the columns that, with pgh_id, find the event before: an index for blocks,
# few rows for the others.
_SAME = {
    "blockevent": "p.cidr = e.cidr AND p.pgh_obj_id = e.pgh_obj_id",
    "poolevent": "p.pgh_obj_id = e.pgh_obj_id",
    "poolcidrevent": "p.pgh_obj_id = e.pgh_obj_id",
    "reservedrangeevent": "p.pgh_obj_id = e.pgh_obj_id",
    "clusterevent": "p.pgh_obj_id = e.pgh_obj_id",
    "connectionevent": "p.pgh_obj_id = e.pgh_obj_id",
}


def of(events: Iterable[tuple[str, int]]) -> dict[int, Change]:
    """By event id; an event is (table as in `Event.table`, id). One query for each table."""
    by_table: dict[str, list[int]] = defaultdict(list)
    found: dict[int, Change] = {}
    for table, number in events:
        by_table[table].append(number)
        found[number] = Change()
    for table, numbers in by_table.items():
        if table in _SAME:
            found |= _read(table, numbers)
    return found


def _read(table: str, numbers: list[int]) -> dict[int, Change]:
    statement = f"""
        SELECT e.pgh_id, e.pgh_label, to_jsonb(e)::text, to_jsonb(b)::text
        FROM pools_{table} e LEFT JOIN LATERAL (
            SELECT * FROM pools_{table} p WHERE {_SAME[table]} AND p.pgh_id < e.pgh_id
            ORDER BY p.pgh_id DESC LIMIT 1) b ON true
        WHERE e.pgh_id = ANY (%s)
    """  # noqa: S608  # the table is a key of _SAME
    with connection.cursor() as cursor:
        cursor.execute(statement, [numbers])
        rows = cursor.fetchall()
    changes = {}
    for number, label, now, earlier in rows:
        before, after = _state(earlier), _state(now)
        gone = label in {"deleted", "removed"}
        changes[number] = Change(before or (after if gone else None), None if gone else after)
    return changes


def _state(text: str | None) -> State | None:
    if text is None:
        return None
    return {key: value for key, value in json.loads(text).items() if not key.startswith("pgh_")}
