"""Definition of a check: a statement about the register, a query for violations, and an optional safe repair.

A check reads the register in steps (a pool, some thousand blocks), each in one snapshot. A concurrent
change is therefore seen completely or not at all, so that a register in use gives no false alarm. A run
can end between two steps, and the next run continues there.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from pools.models import AddressSpace, Pool, PoolCIDR
from pools.platform import events

SLICE = 20_000  # rows of one step
_CHUNK = 5_000  # rows that are fetched at once
Values = Sequence[Any] | Mapping[str, Any]


@dataclass(frozen=True)
class Violation:
    """A sentence that describes what is wrong, and the pool that it concerns, if it concerns one."""

    text: str
    pool_id: int | None = None


# Given the position after which to continue, yields each step as (position at its end, as JSON; the
# argument of `find` and `mend`).
Steps = Callable[[Any], Iterator[tuple[Any, Any]]]


def single_step(_after: Any) -> Iterator[tuple[Any, Any]]:
    """Yield one step that covers everything."""
    yield None, None


@dataclass(frozen=True)
class Check:
    """One statement about the register, and how it is proved.

    `mend` repairs the violations that `find` saw in a step, under the locks that the writers of these
    rows take, and returns the number of changed objects. It never takes a block from its holder.
    """

    code: str
    invariants: str  # names of rules (docs/rules.md), separated by commas
    proves: str
    find: Callable[[Any], Iterable[Violation]]
    steps: Steps = single_step
    mend: Callable[[Any, events.Author], int] | None = None


# --- steps ----------------------------------------------------------------------------------------


def pools(after: int | None) -> Iterator[tuple[int, int]]:
    """Yield a step for each pool: its id."""
    ids = Pool.objects.filter(pk__gt=after or 0).order_by("pk").values_list("pk", flat=True)
    return ((pk, pk) for pk in list(ids))


def cidrs(pool_id: int) -> list[PoolCIDR]:
    """Return the CIDRs of a pool with the related rows that the arithmetic of blocks needs."""
    rows = PoolCIDR.objects.filter(pool=pool_id).select_related("pool__cluster")
    return list(rows.prefetch_related("reserved_ranges"))


def spaces(after: int | None) -> Iterator[tuple[int, int]]:
    """Yield a step for each address space: its id."""
    ids = AddressSpace.objects.filter(pk__gt=after or 0).order_by("pk").values_list("pk", flat=True)
    return ((pk, pk) for pk in list(ids))


def slices(table: str, *, key: str = "id") -> Steps:
    """Return steps over a table by its key: rows greater than the first number, at most the second."""
    statement = (
        f"SELECT max({key}) FROM (SELECT {key} FROM {table} WHERE {key} > %s ORDER BY 1 LIMIT %s) s"  # noqa: S608  # names of our own tables
    )

    def steps(after: int | None) -> Iterator[tuple[int, tuple[int, int]]]:
        low = after or 0
        while (high := _fetch_value(statement, [low, SLICE])) is not None:
            yield high, (low, high)
            low = high

    return steps


def _fetch_value(statement: str, values: Values) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]


# --- reading --------------------------------------------------------------------------------------


class OutOfTime(Exception):  # noqa: N818  # no error: the run ends here
    """The time limit of the run is reached; violations of the unfinished step do not count."""


_deadline: ContextVar[float] = ContextVar("deadline", default=float("inf"))


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Limit the checks inside the block to so many seconds."""
    token = _deadline.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


def seconds_left() -> float:
    """Return the seconds until the time limit; 0 or less after it."""
    return _deadline.get() - time.monotonic()


def check_time() -> None:
    """Raise OutOfTime after the time limit; for loops over many rows."""
    if seconds_left() <= 0:
        raise OutOfTime


@contextmanager
def snapshot() -> Iterator[None]:
    """Read inside the block from one snapshot; no statement runs longer than the time limit."""
    outermost = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if outermost:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if (seconds := seconds_left()) < float("inf"):
            limit = f"{max(1, int(seconds * 1000))}ms"
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [limit])
        yield


def rows(statement: str, values: Values = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the rows of a statement without keeping them all in memory; call it inside a snapshot."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, values)
        while chunk := cursor.fetchmany(_CHUNK):
            check_time()
            yield from chunk


def find_by_statement(statement: str) -> Callable[[Any], Iterator[Violation]]:
    """Return a `find` that runs a statement, which selects (text, pool id or null) for each violation.

    Parameters of the statement are `low` and `high` of a slice, or `at`, the argument of another step.
    """

    def find(step: Any) -> Iterator[Violation]:
        values = {"low": step[0], "high": step[1]} if isinstance(step, tuple) else {"at": step}
        for text, pool_id in rows(statement, values):
            yield Violation(text, pool_id)

    return find


def execute(statement: str, values: Values = ()) -> int:
    """Run a statement that writes and return the number of changed rows."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)
