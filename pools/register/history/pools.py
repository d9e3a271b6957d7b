"""How a pool looked at a time: its settings, CIDRs and ranges, how full it was, who held what.

Also of a pool that is gone. Settings are those of its last event until then. How many blocks were held
is counted back from now: of whole segments of the audit chain by their tallies, the rest event by event.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from pools.core import addresses, blocks, errors
from pools.models import (
    BlockEvent,
    ClusterEvent,
    Pool,
    PoolCIDREvent,
    PoolEvent,
    ReservedRangeEvent,
)
from pools.platform import database
from pools.platform.history import event_numbers
from pools.register.history import addresses as history_addresses
from pools.register.history.addresses import Tenure
from pools.sql import statements

SECONDS = 2.0  # of looking for holders, about
MOST = 50_000  # blocks in cooldown that are counted
_CHUNK = 5_000  # events looked through at once


@dataclass(frozen=True)
class CIDR:
    """A CIDR of the pool then; `reserved` are `first-last`, with the reason of each."""

    cidr: addresses.Network
    orphaned: bool
    pending: str
    reserved: list[tuple[addresses.AddressRange, str]]


@dataclass(frozen=True)
class FamilyCounts:
    """Blocks of a family, as pools.register.usage counts them; `cooling` is None when there were too many."""

    capacity: int
    held: int
    cooling: int | None
    withheld: int  # by reserved ranges, in use or not


@dataclass(frozen=True)
class PoolSnapshot:
    """A pool then; `settings` are the columns of its last event, None before it was made."""

    moment: datetime
    pool_id: int
    settings: Any
    deleted: bool
    cidrs: list[CIDR] = field(default_factory=list)
    counts: dict[int, FamilyCounts] = field(default_factory=dict)


def pool_snapshot(pool_id: int, moment: datetime) -> PoolSnapshot:
    """NotFound for a pool that never was."""
    events = PoolEvent.objects.filter(pgh_obj_id=pool_id)
    last = events.filter(pgh_created_at__lte=moment).order_by("-pgh_id").first()
    if last is None:
        if not events.exists() and not Pool.objects.filter(pk=pool_id).exists():
            raise errors.NotFound("There is no such pool.")
        return PoolSnapshot(moment, pool_id, None, deleted=False)
    deleted = last.pgh_label == "deleted"
    if deleted:
        return PoolSnapshot(moment, pool_id, last, deleted=True)
    cidrs = _cidrs(pool_id, moment)
    return PoolSnapshot(moment, pool_id, last, False, cidrs, _counts(pool_id, moment, last, cidrs))


def cluster_name(snapshot: PoolSnapshot) -> str:
    """The pool's cluster, also one that is gone; "" of a pool that was not there yet."""
    if snapshot.settings is None:
        return ""
    cluster_events = ClusterEvent.objects.filter(pgh_obj_id=snapshot.settings.cluster_id)
    return cluster_events.order_by("-pgh_id").values_list("name", flat=True).first() or ""


def _last(model: Any, pool_id: int, moment: datetime) -> list[Any]:
    """The last event until then of each object of the pool that was there."""
    rows = model.objects.filter(pool_id=pool_id, pgh_created_at__lte=moment)
    last_events = rows.order_by("pgh_obj_id", "-pgh_id").distinct("pgh_obj_id")
    return [event for event in last_events if event.pgh_label != "deleted"]


def _cidrs(pool_id: int, moment: datetime) -> list[CIDR]:
    rows = sorted(
        _last(PoolCIDREvent, pool_id, moment), key=lambda event: (event.position, event.pgh_id)
    )
    ranges: dict[int, list[tuple[addresses.AddressRange, str]]] = {}
    for event in _last(ReservedRangeEvent, pool_id, moment):
        span = addresses.AddressRange(event.first, event.last)
        ranges.setdefault(event.pool_cidr_id, []).append((span, event.reason))
    return [
        CIDR(
            event.cidr,
            event.orphaned_at is not None,
            event.pending or "",
            sorted(ranges.get(event.pgh_obj_id, []), key=lambda pair: pair[0]),
        )
        for event in rows
    ]


def _counts(
    pool_id: int, moment: datetime, pool: Any, cidrs: list[CIDR]
) -> dict[int, FamilyCounts]:
    counts = {}
    for family, mask in ((4, pool.mask_size_v4), (6, pool.mask_size_v6)):
        if mask is None:
            continue
        capacity = free = 0
        for cidr in cidrs:
            if cidr.cidr.version != family:
                continue
            grid = blocks.Layout(
                cidr.cidr, mask, allow_first=pool.allow_first_ip, allow_last=pool.allow_last_ip
            )
            capacity += blocks.total(grid.usable())
            spans = [span for span, _ in cidr.reserved]
            free += 0 if cidr.orphaned or cidr.pending else blocks.total(grid.allocatable(spans))
        counts[family] = FamilyCounts(
            capacity,
            _held(pool_id, family, moment),
            _cooling(pool_id, family, moment),
            capacity - free,
        )
    return counts


def _held(pool_id: int, family: int, moment: datetime) -> int:
    """How many are held now, less what was added since: one statement, so one moment."""
    low, _ = event_numbers.span_between(moment, None)
    ((now, whole, single),) = database.rows(
        _SINCE, {"pool": pool_id, "family": family, "at": moment, "low": low}, prepare=False
    )
    return int(now - whole - single)


# Of a segment whose events are all younger the tally counts; of others, and of what is not sealed,
# each event does.
_SINCE = statements.read("pools/pool_events_since")


def _cooling(pool_id: int, family: int, moment: datetime) -> int | None:
    """Released, not over its cooldown, and nothing happened to it since; None: more than counted."""
    longest = _longest_cooldown(pool_id)
    low, high = event_numbers.span_between(moment - longest, moment + timedelta(microseconds=1))
    values = {
        "pool": pool_id,
        "family": family,
        "at": moment,
        "low": low,
        "high": high,
        "n": MOST + 1,
    }
    ((number,),) = database.rows(_COOLING, values, prepare=False)
    return None if number > MOST else int(number)


_COOLING = statements.read("pools/blocks_cooling_at")


def _longest_cooldown(pool_id: int) -> timedelta:
    cooldowns = PoolEvent.objects.filter(pgh_obj_id=pool_id).values_list(
        "cooldown_seconds", flat=True
    )
    return timedelta(seconds=max(cooldowns, default=0))


# --- who held what --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Holders:
    """Tenures that lasted then, those that began last first; `below`: where to look on."""

    tenures: list[Tenure]
    below: int | None


def holders(
    pool_id: int, moment: datetime, *, below: int | None = None, limit: int = 100
) -> Holders:
    """Who held or cooled which block of the pool then, a page at a time."""
    deadline = time.monotonic() + SECONDS
    _, high = event_numbers.span_between(None, moment + timedelta(microseconds=1))
    position = min(high, below - 1) if below is not None else high
    numbers: list[int] = []
    while len(numbers) <= limit:
        values = {"pool": pool_id, "high": position, "at": moment, "n": _CHUNK}
        batch = database.rows(_LAST, values, prepare=False)
        numbers += [number for number, last in batch if last]
        if len(batch) < _CHUNK:
            position = 0
            break
        position = batch[-1][0] - 1
        if time.monotonic() > deadline:
            break
    chosen = numbers[:limit]
    rows = list(BlockEvent.objects.filter(pk__in=chosen).order_by("-pgh_id"))
    tenures = [tenure for tenure in history_addresses.tenures_of(rows) if tenure.covers(moment)]
    more = chosen[-1] if len(numbers) > limit else position + 1 if position else None
    return Holders(tenures, more)


# The pool's events backwards: which of them is the last of its block until then?
_LAST = statements.read("pools/pool_events_before")
