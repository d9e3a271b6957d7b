"""Checks of the register's data: statements about it that no row contradicts.

A check is a file of `pools/sql/checks` or `claims/sql/checks` that selects a text for each violation, or a function
that yields them where SQL cannot do the arithmetic of blocks. `manage.py check_data` runs them; a worker does so
every night. Each check reads one snapshot, so that a register in use gives no false alarm.
"""

from __future__ import annotations

import functools
import logging
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import resources
from typing import Any

from django.db import DatabaseError, connection, transaction

Check = Callable[[], Iterable[str]]
CHECKS: dict[str, Check] = {}  # filled by pools.extension
_CHUNK = 5_000  # rows that are fetched at once

log = logging.getLogger(__name__)


def of_files(package: str) -> dict[str, Check]:
    """Return a check for each file of the folder `checks` of a package, by its name."""
    files = sorted(
        resources.files(package).joinpath("checks").iterdir(), key=lambda file: file.name
    )
    return {
        file.name.removesuffix(".sql"): functools.partial(_texts, file.read_text())
        for file in files
        if file.name.endswith(".sql")
    }


def _texts(statement: str) -> Iterator[str]:
    return (text for (text,) in rows(statement))


def run(only: Iterable[str] = (), *, seconds: float | None = None) -> Iterator[tuple[str, str]]:
    """Yield (check, text) for each violation; a check that fails, or that has no time left, is one too."""
    deadline = None if seconds is None else time.monotonic() + seconds
    for name in only or list(CHECKS):
        try:
            with _snapshot(deadline):
                yield from ((name, text) for text in CHECKS[name]())
        except (DatabaseError, TimeoutError) as error:
            log.exception("check %s failed", name)
            yield name, f"The check failed: {str(error).partition(chr(10))[0]}"


@contextmanager
def _snapshot(deadline: float | None) -> Iterator[None]:
    outermost = not connection.in_atomic_block
    left = None if deadline is None else int((deadline - time.monotonic()) * 1000)
    if left is not None and left <= 0:
        raise TimeoutError("no time was left for it")
    with transaction.atomic(), connection.cursor() as cursor:
        if outermost:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        cursor.execute("SELECT set_config('statement_timeout', %s, true)", [f"{left or 0}ms"])
        yield


def rows(
    statement: str, values: Sequence[Any] | Mapping[str, Any] = ()
) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement without keeping them all in memory; for checks."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, values or None)
        while chunk := cursor.fetchmany(_CHUNK):
            yield from chunk
