"""Rows of all event tables as the audit chain sees them: by number, each as one digest.

A row's text is its table and the JSON of its columns, as PostgreSQL writes it (`to_jsonb`, in UTC), so
that any change of any column is another text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from django.db import connection

from pools.models import BlockEvent
from pools.platform import database, events

MARK = 16  # bytes of a row's SHA-256 that are kept
_DISTANCE = 4  # bytes of a number, counted from the beginning of its segment
WIDTH = _DISTANCE + MARK
PAGE = 10_000  # rows read at once
_LEAST = -(1 << 63)

Layout = dict[str, list[str]]


@dataclass(frozen=True)
class Row:
    """An event, and what of it is looked up by segments; `held` is by how much it changed a count."""

    number: int
    table: str
    mark: bytes
    at: datetime
    actor: str
    org: str
    env: str
    uid: str
    pool_id: int | None
    family: int
    held: int


def current_layout() -> Layout:
    """The columns of each event table as this version knows them."""
    return {
        model._meta.db_table: sorted(field.column for field in model._meta.concrete_fields)
        for model in events.logs().values()
    }


def missing_columns(layout: Layout) -> list[str]:
    """`table.column` of what a layout has and the database has not any more."""
    found = database.rows(
        "SELECT table_name::text, column_name::text FROM information_schema.columns"
        " WHERE table_schema = ANY (current_schemas(false)) AND table_name = ANY (%s)",
        [list(layout)],
        prepare=False,
    )
    known = set(found)
    return [
        f"{table}.{column}"
        for table, columns in layout.items()
        for column in columns
        if (table, column) not in known
    ]


def full(after: int, through: int, *, layout: Layout, limit: int) -> list[Row]:
    """The first events with numbers in (after, through], in their order; at most `limit`."""
    _in_utc()
    statement = _statement(tuple((name, tuple(columns)) for name, columns in layout.items()), True)
    found = database.rows(statement, {"a": after, "b": through, "n": limit}, prepare=False)
    return [Row(number, table, mark(table, text), *more) for number, table, text, *more in found]


def marks(after: int | None, through: int, *, layout: Layout) -> Iterator[tuple[int, str, bytes]]:
    """(number, table, mark) of the events in (after, through], page by page; None: from any number."""
    statement = _statement(tuple((name, tuple(columns)) for name, columns in layout.items()), False)
    at = _LEAST if after is None else after
    while True:
        _in_utc()
        values = {"a": at, "b": through, "n": PAGE}
        found = database.rows(statement, values, prepare=False)
        yield from ((number, table, mark(table, text)) for number, table, text in found)
        if len(found) < PAGE:
            return
        at = found[-1][0]


def mark(table: str, text: str) -> bytes:
    """The first 16 bytes of the row's SHA-256."""
    return hashlib.sha256(f"{table}\n{text}".encode()).digest()[:MARK]


def packed(after: int, rows: list[Row]) -> bytes:
    """The marks of a segment's events that begins after this number."""
    return b"".join((row.number - after).to_bytes(_DISTANCE, "big") + row.mark for row in rows)


def unpacked(after: int, packed_marks: bytes) -> Iterator[tuple[int, bytes]]:
    """(number, mark) of each event."""
    for start in range(0, len(packed_marks), WIDTH):
        distance = int.from_bytes(packed_marks[start : start + _DISTANCE], "big")
        yield after + distance, packed_marks[start + _DISTANCE : start + WIDTH]


def newest_number() -> int:
    """The last number that was given to an event, 0 before the first."""
    number: int = database.call(
        "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END"
        " FROM pools_event_number",
        [],
    )
    return number


def _in_utc() -> None:
    with connection.cursor() as cursor:  # what to_jsonb writes of a time depends on it
        cursor.execute("SET timezone TO 'UTC'")


@lru_cache(maxsize=8)
def _statement(layout: tuple[tuple[str, tuple[str, ...]], ...], full_rows: bool) -> str:
    """One statement over all event tables, merged by their primary keys."""
    parts = [_part(table, columns, full_rows) for table, columns in layout]
    return f"{' UNION ALL '.join(parts)} ORDER BY 1 LIMIT %(n)s"


def _part(table: str, columns: tuple[str, ...], full_rows: bool) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    more = f", {_looked_up(table, set(columns))}" if full_rows else ""
    return (
        f"(SELECT r.pgh_id, '{table}', to_jsonb(r)::text{more}"  # noqa: S608  # our names
        f' FROM (SELECT {names} FROM "{table}"'
        "  WHERE pgh_id > %(a)s AND pgh_id <= %(b)s ORDER BY pgh_id LIMIT %(n)s) r)"
    )


_HELD = (
    "CASE r.pgh_label WHEN 'allocated' THEN 1 WHEN 'released' THEN -1"
    " WHEN 'removed' THEN CASE r.state WHEN 'held' THEN -1 ELSE 0 END ELSE 0 END"
)


def _looked_up(table: str, columns: set[str]) -> str:
    def text(column: str) -> str:
        return f"r.{column}::text" if column in columns else "''"

    blocks = table == BlockEvent._meta.db_table
    counted = f"r.pool_id, r.family::int, {_HELD}" if blocks else "NULL::bigint, 0, 0"
    uid = "holder_uid" if "holder_uid" in columns else "vm_uid"
    return (
        f"r.pgh_created_at, COALESCE(r.pgh_context ->> 'actor', ''), {text('org')}, {text('env')},"
        f" {text(uid)}, {counted}"
    )


def as_bytes(value: Any) -> bytes:
    """A column of bytes, which psycopg may give as a memory view."""
    return bytes(value or b"")
