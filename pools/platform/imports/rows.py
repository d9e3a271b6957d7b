"""Rows of imports of any kind: what they say and mean is stored, and the status that the register does not decide."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.db.models import QuerySet

from pools.models.imports import ImportRow
from pools.platform import database

# What a correction of a row may change of it and of others.
_RESOLVED = ("texts", "values", "problems", "verdict", "skipped", "corrected")
_RESULT = ("id", "status", "reasons", "object_id", "before", "written")


def state(row: ImportRow) -> tuple[Any, ...]:
    """Return what a correction may change of a row."""
    return tuple(getattr(row, name) for name in _RESOLVED)


def save(rows: Iterable[ImportRow], *results: str) -> None:
    """Insert rows of imports, or store what a correction has changed of those that are there, with these of their results."""
    ImportRow.objects.bulk_create(
        rows,
        batch_size=2_000,
        update_conflicts=True,
        unique_fields=["source_import", "number"],
        update_fields=("file", "line", *_RESOLVED, *results),
    )


def analyze() -> None:
    """Update the statistics of the table after many rows were inserted."""
    database.analyze(ImportRow._meta.db_table)


def save_results(rows: Iterable[ImportRow]) -> None:
    """Store the status of rows, the reasons for it, the objects that they are about, and whether they are written."""
    if values := [{name: getattr(row, name) for name in _RESULT} for row in rows]:
        database.fetch(_SAVE_RESULTS, {"rows": json.dumps(values)})


def in_batches(rows: QuerySet[Any], size: int) -> Iterator[list[Any]]:
    """Yield rows of one import by number, so many at a time; a batch is read when the one before it is done."""
    last_number = 0
    while batch := list(rows.filter(number__gt=last_number).order_by("number")[:size]):
        last_number = batch[-1].number
        yield batch


_SAVE_RESULTS = """
    UPDATE pools_importrow r SET status = n.status, reasons = n.reasons, object_id = n.object_id, before = n.before,
        written = n.written
    FROM jsonb_populate_recordset(NULL::pools_importrow, %(rows)s::jsonb) n WHERE r.id = n.id RETURNING r.id
"""
