"""Rows of imports of any kind: what they say and mean is stored, and the status that the register does not decide."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from django.db.models import QuerySet

from pools.models.imports import Import, ImportRow
from pools.platform import database
from pools.sql import statements

_TABLE = "pools_importrow"
_FEW = 200  # rows up to which the planner chooses the join method
# What a correction of a row may change of it and of others; the first three are JSON.
_RESOLVED = ("texts", "values", "problems", "verdict", "skipped", "corrected")
_JSON = frozenset(_RESOLVED[:3])
_RESULT = ("id", "status", "reasons", "object_id", "before")
_COLUMNS = ("source_import_id", "number", "file", "line", *_RESOLVED)


def state(row: ImportRow) -> tuple[Any, ...]:
    """Return what a correction may change of a row."""
    return tuple(getattr(row, name) for name in _RESOLVED)


def insert(rows: Iterable[ImportRow]) -> None:
    """Insert rows of an import by COPY."""
    database.copy(_TABLE, _COLUMNS, map(_line, rows))


def _line(row: ImportRow) -> tuple[Any, ...]:
    return tuple(
        json.dumps(getattr(row, name)) if name in _JSON else getattr(row, name) for name in _COLUMNS
    )


def analyze() -> None:
    """Update the statistics of the table after many rows were inserted."""
    database.analyze(_TABLE)


def save(rows: Sequence[ImportRow]) -> None:
    """Store what a correction has changed of rows, and insert those that are new."""
    insert(row for row in rows if row.pk is None)
    values = [
        {"id": row.pk, **dict(zip(_RESOLVED, state(row), strict=True))}
        for row in rows
        if row.pk is not None
    ]
    if values:
        database.fetch(_SAVE, {"rows": json.dumps(values)})


def save_results(rows: Iterable[ImportRow]) -> None:
    """Store the status of rows, the reasons for it, and the objects that they are about."""
    if values := [{name: getattr(row, name) for name in _RESULT} for row in rows]:
        database.fetch(_SAVE_RESULTS, {"rows": json.dumps(values)})


def in_batches(rows: QuerySet[Any], size: int) -> Iterator[list[Any]]:
    """Yield rows of one import by number, so many at a time; a batch is read when the one before it is done."""
    last_number = 0
    while batch := list(rows.filter(number__gt=last_number).order_by("number")[:size]):
        last_number = batch[-1].number
        yield batch


def compare(
    source_import: Import,
    statement: str,
    numbers: Collection[int] | None,
    values: Mapping[str, object],
) -> None:
    """Set the status of all rows by a statement that compares them, or those with these numbers, with the register.

    Rows that are left out have no other status, and those whose own problems decide theirs.
    """
    chosen = {"all_rows": numbers is None, "numbers": list(numbers or ())}
    with database.hash_joins_only(many=numbers is None or len(numbers) > _FEW):
        database.fetch(statement, {"import": source_import.pk, **chosen, **values})
        database.fetch(_REFUSE, {"import": source_import.pk})


_SAVE_RESULTS = """
    UPDATE pools_importrow r SET status = n.status, reasons = n.reasons, object_id = n.object_id, before = n.before
    FROM jsonb_populate_recordset(NULL::pools_importrow, %(rows)s::jsonb) n WHERE r.id = n.id RETURNING r.id
"""
_SAVE = statements.read("pools/save_import_rows")
_REFUSE = statements.read("pools/refuse_import_rows")
