"""The state before and after events: rows of the event tables, never stored twice."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.db import connection

from pools.models import BlockEvent
from pools.platform import events

State = dict[str, Any]


@dataclass(frozen=True)
class Change:
    """Columns of the object before and after the event; None where it did not exist."""

    before: State | None = None
    after: State | None = None


# What, with pgh_id, finds the event before: an index for blocks, few rows for most others.
_SAME = "p.pgh_obj_id = e.pgh_obj_id"
_SAME_BLOCK = f"p.cidr = e.cidr AND {_SAME}"
_WITHOUT = "failureevent"  # a refusal changed nothing


def of(told: Iterable[tuple[str, int]]) -> dict[int, Change]:
    """By event id; an event is (table as in `Event.table`, id). One query for each table."""
    by_table: dict[str, list[int]] = defaultdict(list)
    found: dict[int, Change] = {}
    for table, number in told:
        by_table[table].append(number)
        found[number] = Change()
    for table, model in events.logs().items():
        if table in by_table and table != _WITHOUT:
            found |= _read(model, by_table[table])
    return found


def _read(model: Any, numbers: list[int]) -> dict[int, Change]:
    table = model._meta.db_table
    same = _SAME_BLOCK if model is BlockEvent else _SAME
    statement = f"""
        SELECT e.pgh_id, e.pgh_label, to_jsonb(e)::text, to_jsonb(b)::text
        FROM {table} e LEFT JOIN LATERAL (
            SELECT * FROM {table} p WHERE {same} AND p.pgh_id < e.pgh_id
            ORDER BY p.pgh_id DESC LIMIT 1) b ON true
        WHERE e.pgh_id = ANY (%s)
    """  # noqa: S608  # our names
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
