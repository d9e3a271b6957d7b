"""What a check is: one sentence, a query that finds what contradicts it, and perhaps a safe repair.

A check goes through the register in steps (a pool, some thousand blocks), each in one snapshot: what
changes meanwhile is seen as it was at one moment, or not at all, so that a register at work gives no
false alarm. Between steps a run may end, and the next one goes on there.
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
    """What is wrong, in words; of which pool, where it is one's."""

    text: str
    pool_id: int | None = None


# Where a step ends, as JSON, and what `find` and `mend` are told of it; those after a position.
Steps = Callable[[Any], Iterator[tuple[Any, Any]]]


def once(_after: Any) -> Iterator[tuple[Any, Any]]:
    """The whole in one step."""
    yield None, None


@dataclass(frozen=True)
class Check:
    """One sentence about the register that is proved, and how.

    `mend` repairs what `find` told of a step, under the locks that its writers take, and says how
    many things it changed; it never takes a block from its holder.
    """

    code: str
    invariants: str  # names of rules (docs/rules.md), with commas
    proves: str
    find: Callable[[Any], Iterable[Violation]]
    steps: Steps = once
    mend: Callable[[Any, events.Author], int] | None = None


# --- steps ----------------------------------------------------------------------------------------


def pools(after: int | None) -> Iterator[tuple[int, int]]:
    """Each pool by its id."""
    ids = Pool.objects.filter(pk__gt=after or 0).order_by("pk").values_list("pk", flat=True)
    return ((pk, pk) for pk in list(ids))


def cidrs(pool_id: int) -> list[PoolCIDR]:
    """The CIDRs of a pool, with all that their arithmetic asks for."""
    found = PoolCIDR.objects.filter(pool=pool_id).select_related("pool__cluster")
    return list(found.prefetch_related("reserved_ranges"))


def spaces(after: int | None) -> Iterator[tuple[int, int]]:
    """Each address space by its id."""
    ids = AddressSpace.objects.filter(pk__gt=after or 0).order_by("pk").values_list("pk", flat=True)
    return ((pk, pk) for pk in list(ids))


def slices(table: str, *, key: str = "id") -> Steps:
    """The rows of a table by their key: more than the first of both numbers, at most the second."""
    statement = (
        f"SELECT max({key}) FROM (SELECT {key} FROM {table} WHERE {key} > %s ORDER BY 1 LIMIT %s) s"  # noqa: S608  # our names
    )

    def steps(after: int | None) -> Iterator[tuple[int, tuple[int, int]]]:
        low = after or 0
        while (high := _one(statement, [low, SLICE])) is not None:
            yield high, (low, high)
            low = high

    return steps


def _one(statement: str, values: Values) -> Any:
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return cursor.fetchone()[0]


# --- reading --------------------------------------------------------------------------------------


class OutOfTime(Exception):  # noqa: N818  # no error: the run ends here
    """The run's time is over; what the step had found so far does not count."""


_until: ContextVar[float] = ContextVar("until", default=float("inf"))


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """What runs inside has so many seconds."""
    token = _until.set(time.monotonic() + seconds)
    try:
        yield
    finally:
        _until.reset(token)


def left() -> float:
    """Seconds that are left; 0 or less when the time is over."""
    return _until.get() - time.monotonic()


def breathe() -> None:
    """Raises OutOfTime when the time is over; for loops over many rows."""
    if left() <= 0:
        raise OutOfTime


@contextmanager
def snapshot() -> Iterator[None]:
    """All that is read inside is of one moment, and no statement outlasts the run."""
    outermost = not connection.in_atomic_block
    with transaction.atomic(), connection.cursor() as cursor:
        if outermost:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        if (seconds := left()) < float("inf"):
            limit = f"{max(1, int(seconds * 1000))}ms"
            cursor.execute("SELECT set_config('statement_timeout', %s, true)", [limit])
        yield


def rows(statement: str, values: Values = ()) -> Iterator[tuple[Any, ...]]:
    """The rows that a statement answers, however many, without keeping them; inside a snapshot."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(statement, values)
        while found := cursor.fetchmany(_CHUNK):
            breathe()
            yield from found


def told(statement: str) -> Callable[[Any], Iterator[Violation]]:
    """A `find` of a statement that answers (text, pool's id or null) for each violation.

    It is given `low` and `high` of a slice, or `at` of another step.
    """

    def find(at: Any) -> Iterator[Violation]:
        values = {"low": at[0], "high": at[1]} if isinstance(at, tuple) else {"at": at}
        for text, pool_id in rows(statement, values):
            yield Violation(text, pool_id)

    return find


def changed(statement: str, values: Values = ()) -> int:
    """Run a statement that writes; how many rows it changed."""
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        return int(cursor.rowcount)
