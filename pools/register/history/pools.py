"""The state of a pool at a time: its settings, CIDRs and ranges, utilization and holders.

Works for deleted pools too. The settings are those of the last event until then. The number of held
blocks is computed backwards from now, by the pool's events since.
"""

import time
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, NamedTuple

from pools import models
from pools.core import addresses, blocks, errors
from pools.platform import database
from pools.platform.history import event_numbers
from pools.register.history import addresses as history_addresses
from pools.register.history.addresses import Tenure
from pools.sql import statements

SECONDS = 2.0  # approximate time limit of the search for holders
MOST = 50_000  # blocks in cooldown that are counted
_CHUNK = 5_000  # events read by one statement


class ReservedSpan(NamedTuple):
    """A range that was reserved at that time, and why."""

    span: addresses.AddressRange
    reason: str


@dataclass(frozen=True)
class CIDR:
    """A CIDR of the pool at that time."""

    cidr: addresses.Network
    orphaned: bool
    pending: str
    reserved: list[ReservedSpan]


@dataclass(frozen=True)
class FamilyCounts:
    """Counts of blocks, as in pools.register.usage; `cooling` is None if there were more than MOST."""

    capacity: int
    held: int
    cooling: int | None
    withheld: int  # by reserved ranges, in use or not


@dataclass(frozen=True)
class PoolSnapshot:
    """A pool at a time; `settings` are the columns of its last event, None before its creation."""

    moment: datetime
    pool_id: int
    settings: Any
    deleted: bool
    cidrs: list[CIDR] = field(default_factory=list)
    counts: dict[int, FamilyCounts] = field(default_factory=dict)

    @property
    def state(self) -> str:
        return "absent" if self.settings is None else "deleted" if self.deleted else "present"

    @property
    def cluster(self) -> str:
        """The name of the pool's cluster, also of a deleted one; "" before the pool's creation."""
        if self.settings is None:
            return ""
        events = models.ClusterEvent.objects.filter(pgh_obj_id=self.settings.cluster_id)
        return events.order_by("-pgh_id").values_list("name", flat=True).first() or ""


def pool_snapshot(pool_id: int, moment: datetime) -> PoolSnapshot:
    """Return the state of a pool at a moment; raise NotFound if the pool never existed."""
    events = models.PoolEvent.objects.filter(pgh_obj_id=pool_id)
    last = events.filter(pgh_created_at__lte=moment).order_by("-pgh_id").first()
    if last is None:
        if not events.exists() and not models.Pool.objects.filter(pk=pool_id).exists():
            raise errors.NotFound("There is no such pool.")
        return PoolSnapshot(moment, pool_id, None, deleted=False)
    deleted = last.pgh_label == "deleted"
    if deleted:
        return PoolSnapshot(moment, pool_id, last, deleted=True)
    cidrs = _cidrs(pool_id, moment)
    return PoolSnapshot(moment, pool_id, last, False, cidrs, _counts(pool_id, moment, last, cidrs))


def _last_events(model: Any, pool_id: int, moment: datetime) -> list[Any]:
    """Return the last event until the moment of each object of the pool that existed then."""
    rows = model.objects.filter(pool_id=pool_id, pgh_created_at__lte=moment)
    last_events = rows.order_by("pgh_obj_id", "-pgh_id").distinct("pgh_obj_id")
    return [event for event in last_events if event.pgh_label != "deleted"]


def _cidrs(pool_id: int, moment: datetime) -> list[CIDR]:
    rows = sorted(
        _last_events(models.PoolCIDREvent, pool_id, moment),
        key=lambda event: (event.position, event.pgh_id),
    )
    ranges: dict[int, list[ReservedSpan]] = {}
    for event in _last_events(models.ReservedRangeEvent, pool_id, moment):
        span = addresses.AddressRange(event.first, event.last)
        ranges.setdefault(event.pool_cidr_id, []).append(ReservedSpan(span, event.reason))
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
            spans = [reserved.span for reserved in cidr.reserved]
            free += 0 if cidr.orphaned or cidr.pending else blocks.total(grid.allocatable(spans))
        counts[family] = FamilyCounts(
            capacity,
            _count_held(pool_id, family, moment),
            _count_cooling(pool_id, family, moment),
            capacity - free,
        )
    return counts


def _count_held(pool_id: int, family: int, moment: datetime) -> int:
    """Return the number of blocks that were held at the moment."""
    low, _ = event_numbers.span_between(moment, None)
    values = {"pool": pool_id, "family": family, "at": moment, "low": low}
    ((number,),) = database.rows(_COUNT_HELD, values, prepare=False)
    return int(number)


_COUNT_HELD = statements.read("pools/blocks_held_at")


def _count_cooling(pool_id: int, family: int, moment: datetime) -> int | None:
    """Return the number of blocks in cooldown at the moment, or None if there were more than MOST."""
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
    ((number,),) = database.rows(_COUNT_COOLING, values, prepare=False)
    return None if number > MOST else int(number)


_COUNT_COOLING = statements.read("pools/blocks_cooling_at")


def _longest_cooldown(pool_id: int) -> timedelta:
    cooldowns = models.PoolEvent.objects.filter(pgh_obj_id=pool_id).values_list(
        "cooldown_seconds", flat=True
    )
    return timedelta(seconds=max(cooldowns, default=0))


# --- holders --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class HolderPage:
    """A page of the tenures at that time, latest beginning first; `below` is for the next page."""

    tenures: list[Tenure]
    below: int | None


def pool_holders(
    pool_id: int, moment: datetime, *, below: int | None = None, limit: int = 100
) -> HolderPage:
    """Return a page of the tenures (held or cooling) in the pool at the moment."""
    deadline = time.monotonic() + SECONDS
    _, high = event_numbers.span_between(None, moment + timedelta(microseconds=1))
    position = min(high, below - 1) if below is not None else high
    numbers: list[int] = []
    while len(numbers) <= limit:
        values = {"pool": pool_id, "high": position, "at": moment, "n": _CHUNK}
        batch = database.rows(_EVENTS_BEFORE, values, prepare=False)
        numbers += [number for number, last in batch if last]
        if len(batch) < _CHUNK:
            position = 0
            break
        position = batch[-1][0] - 1
        if time.monotonic() > deadline:
            break
    chosen = numbers[:limit]
    rows = list(models.BlockEvent.objects.filter(pk__in=chosen).order_by("-pgh_id"))
    tenures = [tenure for tenure in history_addresses.build_tenures(rows) if tenure.covers(moment)]
    next_below = chosen[-1] if len(numbers) > limit else position + 1 if position else None
    return HolderPage(tenures, next_below)


# Reads the pool's events backwards; each row says if the event is the last one of its block.
_EVENTS_BEFORE = statements.read("pools/pool_events_before")
