"""Who holds an address, and who held it at a time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_network
from typing import Any

from django.db.models import F, Q, QuerySet

from pools.core import addresses, block_fields, errors, timestamps
from pools.models import AddressSpace, BlockEvent, ClusterEvent, Pool, PoolEvent
from pools.models.blocks import LIVE
from pools.platform import database
from pools.sql import statements

MOST = 1000  # events of one address
AHEAD = timedelta(seconds=30)


@dataclass(frozen=True)
class Tenure:
    """One holder's time with a block; `until` None while it lasts.

    `state` is `held`, or `cooling` for the time after a release in which nobody else gets it.
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
        """With times as RFC 3339 text."""
        times = {"since": block_fields.time(self.since), "until": block_fields.time(self.until)}
        return {**self.__dict__, **times}

    def covers(self, moment: datetime) -> bool:
        """Whether it lasted at that moment (from `since`, up to but not with `until`)."""
        return self.since <= moment and (self.until is None or moment < self.until)


def holders(
    address: addresses.Address, *, cluster_id: int | None = None, at: datetime | None = None
) -> tuple[list[Tenure], list[Tenure]]:
    """(who has the address now or at the time, all tenures newest first), over address spaces.

    The cluster may be one that was forgotten (`former_cluster`).
    """
    rows = _of_address(address, cluster_id)
    instant = at or database.now()
    # As an expression: by the index of times all that came before would be read.
    events = rows.alias(told=F("pgh_created_at") + timedelta(0)).filter(told__lte=instant)
    last = events.order_by("space_id", "cidr", "-pgh_id")
    then = tenures_of(list(last.distinct("space_id", "cidr")))
    return [tenure for tenure in then if tenure.covers(instant)], _tenures(rows)


def past(value: str, *, field: str = "") -> datetime:
    """A time, as RFC 3339 text, of which something can be known: InvalidInput `time`, `future_time`.

    Half a minute ahead is taken for now: clocks differ.
    """
    moment = timestamps.parse_timestamp(value, field=field)
    if moment > database.now() + AHEAD:
        message = "lies in the future: what will be is not known"
        raise errors.InvalidInput.for_field(field, "future_time", message, value)
    return moment


def former_cluster(name: str) -> int | None:
    """The id of the cluster that had this name last, as far as events tell."""
    events = ClusterEvent.objects.filter(name=name).order_by("-pgh_id")
    cluster_id: int | None = events.values_list("pgh_obj_id", flat=True).first()
    return cluster_id


def _of_address(address: addresses.Address, cluster_id: int | None) -> QuerySet[Any]:
    # Of all pools that there ever were.
    name = f"mask_size_v{address.version}"
    sizes = set(Pool.objects.values_list(name, flat=True)) | set(
        PoolEvent.objects.values_list(name, flat=True)
    )
    cidrs = [_block_of(address, size) for size in sizes if size is not None]
    rows: QuerySet[Any] = BlockEvent.objects.filter(cidr__in=cidrs)
    if cluster_id is not None:
        spaces = AddressSpace.objects.filter(cluster=cluster_id).values("pk")
        its_pools = PoolEvent.objects.filter(cluster_id=cluster_id).values("pgh_obj_id")
        rows = rows.filter(Q(space_id__in=spaces) | Q(pool_id__in=its_pools))
    return rows


def _tenures(rows: QuerySet[Any]) -> list[Tenure]:
    # In no order that an index has, or all events might be read from the last one back.
    newest = list(rows.order_by((F("pgh_id") + 0).desc())[:MOST])
    newest.reverse()
    names = Names(newest)
    tenures: list[Tenure] = []
    by_block: dict[tuple[int, str], list[Any]] = {}
    for event in newest:
        by_block.setdefault((event.space_id, str(event.cidr)), []).append(event)
    for chain in by_block.values():
        tenures += _chain(chain, names)
    return sorted(tenures, key=lambda tenure: tenure.since, reverse=True)


def _block_of(address: addresses.Address, size: int) -> str:
    return str(ip_network((address, size), strict=False))


def _chain(events: list[Any], names: Names) -> list[Tenure]:
    """The tenures that the events of one block tell, oldest first."""
    tenures = []
    for event, following in zip(events, [*events[1:], None], strict=True):
        if begins(event):
            tenures.append(tenure(event, following, names))
    return tenures


def begins(event: Any) -> bool:
    """Whether somebody has the block from then on."""
    return event.pgh_label not in {"cooldown_ended", "removed"} and event.state in LIVE


def tenure(event: Any, following: Any, names: Names) -> Tenure:
    """What an event of a block began, and its next event ended (None: nothing did)."""
    until = _start(following) if following else None
    if event.state == "cooling" and (until is None or until > event.available_from):
        until = event.available_from
    return _tenure(event, _start(event), until, names)


def tenures_of(events: list[Any]) -> list[Tenure]:
    """The tenure that each event began, as far as it is one; `until` by the block's next event."""
    live = [event for event in events if begins(event)]
    following = _following(live)
    names = Names(live)
    return [tenure(event, following.get(event.pgh_id), names) for event in live]


def _following(events: list[Any]) -> dict[int, Any]:
    """The next event of the same block, by the number of each."""
    if not events:
        return {}
    number_pairs = database.rows(
        _FOLLOWING, {"events": [event.pgh_id for event in events]}, prepare=False
    )
    pairs = dict(number_pairs)
    rows = BlockEvent.objects.in_bulk(list(pairs.values()))
    return {number: rows[after] for number, after in pairs.items()}


# In the order of the CIDR's index, which no other index has: whatever the planner takes CIDRs for.
_FOLLOWING = statements.read("pools/following_events")


def _start(event: Any) -> datetime:
    """When what the event tells of began."""
    times = {"allocated": event.allocated_at, "released": event.released_at}
    moment: datetime = times.get(event.pgh_label, event.pgh_created_at)
    return moment


class Names:
    """Names of the clusters, spaces and pools of some events, also of those that are gone."""

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
        """(cluster, space); of a cluster that was forgotten the name that it had."""
        space = self.spaces.get(event.space_id)
        if space is not None:
            return space.cluster.name, space.name
        return self.clusters.get(self.cluster_of.get(event.pool_id), ""), ""


def _tenure(event: Any, since: datetime, until: datetime | None, names: Names) -> Tenure:
    cluster, space = names.space(event)
    return Tenure(
        cluster=cluster,
        space=space,
        pool=names.pools.get(event.pool_id, ""),
        block=str(event.cidr),
        state=event.state,
        holder={"kind": event.holder_kind, "id": event.holder_id, "uid": event.holder_uid},
        org=event.org,
        env=event.env,
        since=since,
        until=until,
    )
