"""The present and former holders of an address."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_network
from typing import Any

from django.db.models import F, Q, QuerySet

from pools.core import addresses, block_fields, errors, holders, periods
from pools.models import LIVE, AddressSpace, BlockEvent, ClusterEvent, Pool, PoolEvent
from pools.platform import database
from pools.sql import statements

MOST = 1000  # events of one address


@dataclass(frozen=True)
class Tenure:
    """The time in which one holder held a block; `until` is None while it lasts.

    `state` is `held`, or `cooling` for the cooldown after the release.
    """

    cluster: str
    space: str
    pool: str
    block: str
    state: str
    holder: dict[str, str]
    org: str
    env: str
    since: datetime
    until: datetime | None

    def as_json(self) -> dict[str, Any]:
        """Return the fields, with times as RFC 3339 strings."""
        times = {
            "since": block_fields.format_time(self.since),
            "until": block_fields.format_time(self.until),
        }
        return {**self.__dict__, **times}

    def covers(self, moment: datetime, start: datetime | None = None) -> bool:
        """Return True if the tenure covers the moment, or any moment from `start` to it.

        `since` is included, `until` is not.
        """
        return self.since <= moment and (self.until is None or (start or moment) < self.until)


def find_holders(
    address: addresses.Address,
    *,
    cluster_id: int | None = None,
    at: datetime | None = None,
    start: datetime | None = None,
) -> tuple[list[Tenure], list[Tenure]]:
    """Return (tenures now, at a time, or from `start` to it; all tenures newest first) in all address spaces.

    The cluster may have been deleted (`find_former_cluster`).
    """
    rows = _address_events(address, cluster_id)
    instant = at or database.now()
    if start is not None:
        tenures = _tenures(rows)
        return [tenure for tenure in tenures if tenure.covers(instant, start)], tenures
    # An expression, so that the planner does not use the index of times and read all earlier events.
    events = rows.alias(time=F("pgh_created_at") + timedelta(0)).filter(time__lte=instant)
    last = events.order_by("space_id", "cidr", "-pgh_id")
    last_tenures = build_tenures(list(last.distinct("space_id", "cidr")))
    return [tenure for tenure in last_tenures if tenure.covers(instant)], _tenures(rows)


def parse_past_time(value: str, field: str = "") -> datetime:
    """Parse a time in the past from an RFC 3339 string.

    Up to `periods.AHEAD` in the future is accepted, because clocks differ. Raises InvalidInput `time`,
    `future_time`.
    """
    moment = holders.parse_timestamp(value, field=field)
    if moment > database.now() + periods.AHEAD:
        message = "the time must not be in the future"
        raise errors.InvalidInput.for_field(field, "future_time", message, value)
    return moment


def find_former_cluster(name: str) -> int | None:
    """Return the id of the last cluster with this name by the events, or None."""
    events = ClusterEvent.objects.filter(name=name).order_by("-pgh_id")
    cluster_id: int | None = events.values_list("pgh_obj_id", flat=True).first()
    return cluster_id


def _address_events(address: addresses.Address, cluster_id: int | None) -> QuerySet[Any]:
    # The mask sizes of all present and former pools.
    name = f"mask_size_v{address.version}"
    sizes = set(Pool.objects.values_list(name, flat=True)) | set(
        PoolEvent.objects.values_list(name, flat=True)
    )
    cidrs = [str(ip_network((address, size), strict=False)) for size in sizes if size is not None]
    rows: QuerySet[Any] = BlockEvent.objects.filter(cidr__in=cidrs)
    if cluster_id is not None:
        spaces = AddressSpace.objects.filter(cluster=cluster_id).values("pk")
        its_pools = PoolEvent.objects.filter(cluster_id=cluster_id).values("pgh_obj_id")
        rows = rows.filter(Q(space_id__in=spaces) | Q(pool_id__in=its_pools))
    return rows


def _tenures(rows: QuerySet[Any]) -> list[Tenure]:
    # An expression, so that the planner does not read all events backwards along an index.
    newest = list(rows.order_by((F("pgh_id") + 0).desc())[:MOST])
    newest.reverse()
    names = EventNames(newest)
    tenures: list[Tenure] = []
    by_block: dict[tuple[int, str], list[Any]] = {}
    for event in newest:
        by_block.setdefault((event.space_id, str(event.cidr)), []).append(event)
    for chain in by_block.values():
        tenures += _block_tenures(chain, names)
    return sorted(tenures, key=lambda tenure: tenure.since, reverse=True)


def _block_tenures(events: list[Any], names: EventNames) -> list[Tenure]:
    """Return the tenures of one block from its events, oldest first."""
    tenures = []
    for event, following in zip(events, [*events[1:], None], strict=True):
        if begins_tenure(event):
            tenures.append(build_tenure(event, following, names))
    return tenures


def begins_tenure(event: Any) -> bool:
    """Return True if a tenure begins with the event."""
    return event.pgh_label not in {"cooldown_ended", "removed"} and event.state in LIVE


def build_tenure(event: Any, following: Any, names: EventNames) -> Tenure:
    """Return the tenure that begins with an event and ends with the block's next event (None: lasts)."""
    until = _start_time(following) if following else None
    if event.state == "cooling" and (until is None or until > event.available_from):
        until = event.available_from
    return _create_tenure(event, _start_time(event), until, names)


def build_tenures(events: list[Any]) -> list[Tenure]:
    """Return the tenures that begin with the given events; each ends with the block's next event."""
    live = [event for event in events if begins_tenure(event)]
    following = _next_events(live)
    names = EventNames(live)
    return [build_tenure(event, following.get(event.pgh_id), names) for event in live]


def _next_events(events: list[Any]) -> dict[int, Any]:
    """Return the next event of the same block, by the number of the event."""
    if not events:
        return {}
    number_pairs = database.rows(
        _FOLLOWING, {"events": [event.pgh_id for event in events]}, prepare=False
    )
    pairs = dict(number_pairs)
    rows = BlockEvent.objects.in_bulk(list(pairs.values()))
    return {number: rows[after] for number, after in pairs.items()}


# Sorted in the order of the CIDR's index alone, so that the planner uses it whatever its statistics say.
_FOLLOWING = statements.read("pools/following_events")


def _start_time(event: Any) -> datetime:
    """Return the time at which the tenure of an event begins."""
    times = {"allocated": event.allocated_at, "released": event.released_at}
    moment: datetime = times.get(event.pgh_label, event.pgh_created_at)
    return moment


class EventNames:
    """Names of the clusters, spaces and pools of events, also of deleted ones."""

    def __init__(self, events: list[Any]) -> None:
        spaces = {event.space_id for event in events}
        pools = {event.pool_id for event in events}
        self.spaces = AddressSpace.objects.select_related("cluster").in_bulk(spaces)
        pool_events = PoolEvent.objects.filter(pgh_obj_id__in=pools).order_by("pgh_id")
        self.pools: dict[int, str] = dict(pool_events.values_list("pgh_obj_id", "name"))
        self.cluster_of = dict(pool_events.values_list("pgh_obj_id", "cluster_id"))
        gone = ClusterEvent.objects.filter(pgh_obj_id__in=set(self.cluster_of.values()))
        self.clusters = dict(gone.order_by("pgh_id").values_list("pgh_obj_id", "name"))
        self.pools |= dict(Pool.objects.filter(pk__in=pools).values_list("pk", "name"))

    def space(self, event: Any) -> tuple[str, str]:
        """Return (cluster, space); for a deleted cluster its last name."""
        space = self.spaces.get(event.space_id)
        if space is not None:
            return space.cluster.name, space.name
        return self.clusters.get(self.cluster_of.get(event.pool_id), ""), ""


def _create_tenure(
    event: Any, since: datetime, until: datetime | None, names: EventNames
) -> Tenure:
    cluster, space = names.space(event)
    return Tenure(
        cluster=cluster,
        space=space,
        pool=names.pools.get(event.pool_id, ""),
        block=str(event.cidr),
        state=event.state,
        holder=holder_of(event),
        org=event.org,
        env=event.env,
        since=since,
        until=until,
    )


def holder_of(event: Any) -> dict[str, str]:
    """Return the holder of a block after an event, as {kind, id, uid}."""
    return {"kind": event.holder_kind, "id": event.holder_id, "uid": event.holder_uid}
