"""Rows of all event tables as the audit chain reads them: ordered by number, each with a digest.

The digest of a row covers its table and the JSON of its columns as PostgreSQL writes it (`to_jsonb`, in
UTC), so that a change of any column changes the digest.
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

MARK = 16  # leading bytes of a row's SHA-256 that a segment stores
_DISTANCE = 4  # bytes of an event number, relative to the beginning of its segment
WIDTH = _DISTANCE + MARK
PAGE = 10_000  # rows read at once
_LEAST = -(1 << 63)

Layout = dict[str, list[str]]


@dataclass(frozen=True)
class Row:
    """An event with the columns that segments are looked up by; `held` is its change of the block count."""

    number: int
    table: str
    mark: bytes
    created_at: datetime
    actor: str
    org: str
    env: str
    uid: str
    pool_id: int | None
    family: int
    held: int


def current_layout() -> Layout:
    """Return the columns of each event table as this version defines them."""
    return {
        model._meta.db_table: sorted(field.column for field in model._meta.concrete_fields)
        for model in events.event_models().values()
    }


def missing_columns(layout: Layout) -> list[str]:
    """Return `table.column` for each column of a layout that the database no longer has."""
    columns_found = database.rows(
        "SELECT table_name::text, column_name::text FROM information_schema.columns"
        " WHERE table_schema = ANY (current_schemas(false)) AND table_name = ANY (%s)",
        [list(layout)],
        prepare=False,
    )
    existing = set(columns_found)
    return [
        f"{table}.{column}"
        for table, columns in layout.items()
        for column in columns
        if (table, column) not in existing
    ]


def read_rows(after: int, through: int, *, layout: Layout, limit: int) -> list[Row]:
    """Return the first `limit` events with numbers in (after, through], ordered by number."""
    _in_utc()
    statement = _statement(tuple((name, tuple(columns)) for name, columns in layout.items()), True)
    rows = database.rows(statement, {"a": after, "b": through, "n": limit}, prepare=False)
    return [Row(number, table, row_mark(table, text), *more) for number, table, text, *more in rows]


def read_marks(
    after: int | None, through: int, *, layout: Layout
) -> Iterator[tuple[int, str, bytes]]:
    """Yield (number, table, mark) of the events in (after, through], page by page; None: no lower bound."""
    statement = _statement(tuple((name, tuple(columns)) for name, columns in layout.items()), False)
    position = _LEAST if after is None else after
    while True:
        _in_utc()
        values = {"a": position, "b": through, "n": PAGE}
        rows = database.rows(statement, values, prepare=False)
        yield from ((number, table, row_mark(table, text)) for number, table, text in rows)
        if len(rows) < PAGE:
            return
        position = rows[-1][0]


def row_mark(table: str, text: str) -> bytes:
    """Return the mark of a row: the first MARK bytes of its SHA-256."""
    return hashlib.sha256(f"{table}\n{text}".encode()).digest()[:MARK]


def pack_marks(after: int, rows: list[Row]) -> bytes:
    """Return the marks of a segment whose events have numbers greater than `after`."""
    return b"".join((row.number - after).to_bytes(_DISTANCE, "big") + row.mark for row in rows)


def unpack_marks(after: int, packed_marks: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield (number, mark) of each event of a segment."""
    for start in range(0, len(packed_marks), WIDTH):
        distance = int.from_bytes(packed_marks[start : start + _DISTANCE], "big")
        yield after + distance, packed_marks[start + _DISTANCE : start + WIDTH]


def newest_number() -> int:
    """Return the last number that was drawn for an event; 0 before the first."""
    number: int = database.call(
        "SELECT CASE WHEN is_called THEN last_value ELSE last_value - 1 END"
        " FROM pools_event_number",
        [],
    )
    return number


def _in_utc() -> None:
    with connection.cursor() as cursor:  # to_jsonb writes timestamps in the session's time zone
        cursor.execute("SET timezone TO 'UTC'")


@lru_cache(maxsize=8)
def _statement(layout: tuple[tuple[str, tuple[str, ...]], ...], full_rows: bool) -> str:
    """Return one statement over all event tables, ordered by number through their primary keys."""
    parts = [_part(table, columns, full_rows) for table, columns in layout]
    return f"{' UNION ALL '.join(parts)} ORDER BY 1 LIMIT %(n)s"


def _part(table: str, columns: tuple[str, ...], full_rows: bool) -> str:
    names = ", ".join(f'"{column}"' for column in columns)
    more = f", {_looked_up(table, set(columns))}" if full_rows else ""
    return (
        f"(SELECT r.pgh_id, '{table}', to_jsonb(r)::text{more}"  # noqa: S608  # our own names
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
    """Return a bytea column as bytes; psycopg may return it as a memory view."""
    return bytes(value or b"")
