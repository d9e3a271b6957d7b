"""The state of an object before and after an event, read from the event tables."""

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
    """The columns of an object before and after an event; None where the object did not exist."""

    before: State | None = None
    after: State | None = None


# The conditions that, with pgh_id, find the previous event of an object: an index for blocks; most other
# objects have few rows.
_SAME_OBJECT = "p.pgh_obj_id = e.pgh_obj_id"
_SAME_BLOCK = f"p.cidr = e.cidr AND {_SAME_OBJECT}"
_WITHOUT_STATE = "failureevent"  # a refused allocation changes nothing


def read_changes(event_keys: Iterable[tuple[str, int]]) -> dict[int, Change]:
    """Return the change of each event by its id, with one query per table.

    An event key is (table as in `Event.table`, event id).
    """
    by_table: dict[str, list[int]] = defaultdict(list)
    changes: dict[int, Change] = {}
    for table, number in event_keys:
        by_table[table].append(number)
        changes[number] = Change()
    for table, model in events.event_models().items():
        if table in by_table and table != _WITHOUT_STATE:
            changes |= _read(model, by_table[table])
    return changes


def _read(model: Any, numbers: list[int]) -> dict[int, Change]:
    table = model._meta.db_table
    condition = _SAME_BLOCK if model is BlockEvent else _SAME_OBJECT
    statement = f"""
        SELECT e.pgh_id, e.pgh_label, to_jsonb(e)::text, to_jsonb(b)::text
        FROM {table} e LEFT JOIN LATERAL (
            SELECT * FROM {table} p WHERE {condition} AND p.pgh_id < e.pgh_id
            ORDER BY p.pgh_id DESC LIMIT 1) b ON true
        WHERE e.pgh_id = ANY (%s)
    """  # noqa: S608  # names of our own tables
    with connection.cursor() as cursor:
        cursor.execute(statement, [numbers])
        rows = cursor.fetchall()
    changes = {}
    for number, label, current, earlier in rows:
        before, after = _state(earlier), _state(current)
        removed = label in {"deleted", "removed"}
        changes[number] = Change(before or (after if removed else None), None if removed else after)
    return changes


def _state(text: str | None) -> State | None:
    if text is None:
        return None
    return {key: value for key, value in json.loads(text).items() if not key.startswith("pgh_")}
