"""Two moments compared: the blocks that were gained, lost, or moved to another holder between them.

A block that was released and allocated again to the same holder in between is no difference.
"""

from collections.abc import Collection
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pools.core import errors
from pools.models import BlockEvent
from pools.platform import database
from pools.platform.history import event_numbers
from pools.register import event_filters
from pools.register.history import addresses
from pools.sql import statements

CHANGES = ("gained", "lost", "moved")
_LATER = timedelta(microseconds=1)  # the bounds of event numbers exclude the end of a time


@dataclass(frozen=True)
class Difference:
    """A block whose holder differs; `before` and `after` are {kind, id, uid}, None where nobody held it.

    `changed_at` is the time of its last event until the later moment.
    """

    change: str
    block: str
    cluster: str
    pool: str
    before: dict[str, str] | None
    after: dict[str, str] | None
    org: str
    env: str
    changed_at: datetime


@dataclass(frozen=True)
class Comparison:
    """A page of differences, the last changed first; `counts` are of all pages, by change.

    `below` is the argument for the next page, None at the end.
    """

    since: datetime
    until: datetime
    differences: list[Difference] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=lambda: dict.fromkeys(CHANGES, 0))
    below: int | None = None


def select_pools(cluster_id: int | None, pool_ids: Collection[int] | None) -> set[int] | None:
    """Return the ids of the pools that are both among these and the cluster's, former ones too; None means all."""
    if cluster_id is None:
        return None if pool_ids is None else {*pool_ids}
    of_cluster = event_filters.pools_of_cluster(cluster_id)
    return of_cluster if pool_ids is None else of_cluster & {*pool_ids}


def compare(
    since: datetime,
    until: datetime,
    pool_ids: Collection[int] | None = None,
    *,
    below: int | None = None,
    limit: int = 100,
) -> Comparison:
    """Return the differences between two moments in the pools, or in all of them.

    Raises InvalidInput `time_order` if the second moment is not after the first one.
    """
    if until <= since:
        message = "must be after the time that it is compared with"
        raise errors.InvalidInput.for_field("until", "time_order", message, until.isoformat())
    low, high = event_numbers.span_between(since, until + _LATER)
    values = {
        "since": since,
        "until": until,
        "low": low,
        "high": high,
        "pools": None if pool_ids is None else [*pool_ids],
        "below": below,
        "most": limit + 1,
    }
    rows = database.rows(_COMPARED, values, prepare=False)
    if not rows:
        return Comparison(since, until)
    numbers = {number for row in rows for number in row[:2] if number is not None}
    events = BlockEvent.objects.in_bulk(list(numbers))
    names = addresses.EventNames(list(events.values()))
    differences = [
        _difference(change, events.get(before_id), events[after_id], names)
        for after_id, before_id, change, *_counts in rows[:limit]
    ]
    counts = dict(zip(CHANGES, rows[0][3:], strict=True))
    next_below = rows[limit - 1][0] if len(rows) > limit else None
    return Comparison(since, until, differences, counts, next_below)


_COMPARED = statements.read("pools/holders_compared")


def _difference(change: str, before: Any, after: Any, names: addresses.EventNames) -> Difference:
    cluster, _space = names.space(after)
    tenant = before if change == "lost" else after
    return Difference(
        change=change,
        block=str(after.cidr),
        cluster=cluster,
        pool=names.pools.get(after.pool_id, ""),
        before=None if change == "gained" else addresses.holder_of(before),
        after=None if change == "lost" else addresses.holder_of(after),
        org=tenant.org,
        env=tenant.env,
        changed_at=after.pgh_created_at,
    )
