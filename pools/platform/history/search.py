"""What happened to an address, a network, a holder, an organisation, by whom, and when.

Each event table has a searcher that says which of its rows are about what is wanted. Apps that use this
one add theirs. Rows are found by the tables' indexes; an org, an environment, an actor and a holder's
uid by the segments of the audit chain that name them, so that no index of theirs slows allocations.
"""

from __future__ import annotations

import contextlib
import heapq
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import ip_network
from typing import Any

from django.db.models import Q

from pools.core import addresses, errors
from pools.models import Event
from pools.platform.history import event_numbers, snapshots

SECONDS = 2.0  # of looking, about; then what was found is told, and from where to look on
SEE = "pools.view_event"
# One of these may search; what each finds is a searcher's matter. Apps that use this one add theirs.
PERMISSIONS: list[str] = []  # filled by pools.extension


@dataclass(frozen=True)
class Wanted:
    """What is searched: all that is given must hold of an event.

    `network` is an address (/32, /128) or a CIDR: events of blocks in it and around it. `vm` is
    `namespace/name` or a name. `kind` is the first word of an event's type (`entry`, `import`, `pool`),
    with `object_id` one object. `since` is included, `until` is not.
    """

    network: addresses.Network | None = None
    mac: str = ""
    holder_kind: str = ""
    holder: str = ""
    uid: str = ""
    vm: str = ""
    org: str = ""
    env: str = ""
    actor: str = ""
    name: str = ""  # of a pool, a cluster, a network, an import's file, …
    cluster_id: int | None = None
    kind: str = ""
    object_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def indexed(self) -> bool:
        """Whether an index of each table finds it."""
        return bool(
            self.network or self.mac or self.holder or self.vm or self.name or self.object_id
        )

    @property
    def named(self) -> dict[str, str]:
        """What segments are found by, when no index of a table finds it."""
        if self.indexed:
            return {}
        pairs = {"uid": self.uid, "org": self.org, "env": self.env, "actor": self.actor}
        return {kind: name for kind, name in pairs.items() if name}


def everything(_user: Any) -> Q | None:
    """For people who see the events."""
    return Q() if _sees(_user) else None


@dataclass(frozen=True)
class Searcher:
    """One event table. `match` says which rows are about what is wanted, None: none can be; of network,
    mac, holder, vm, name and cluster only, the rest is asked of every table alike. `seen` limits the
    rows to what somebody may see, None: nothing.
    """

    model: Any
    kind: str
    match: Callable[[Wanted], Q | None]
    seen: Callable[[Any], Q | None] = everything


@dataclass(frozen=True)
class Found:
    """Events, newest first; `below`: look on for numbers beneath it, None at the end."""

    events: list[Event]
    below: int | None


# What a text may be besides an address or a name: apps that use this one add their readers.
READERS: list[Callable[[str], Wanted | None]] = []  # filled by pools.extension
SEARCHERS: list[Searcher] = []  # the same


def of_text(text: str) -> list[Wanted]:
    """What somebody who wrote this into one box may have meant; an event of any is found."""
    network = _network(text)
    if network is not None:
        return [Wanted(network=network)]
    for reader in READERS:
        wanted = reader(text)
        if wanted is not None:
            return [wanted, Wanted(holder=wanted.mac)]
    return [
        Wanted(holder=text),
        Wanted(vm=text),
        Wanted(name=text),
        Wanted(org=text),
        Wanted(env=text),
        Wanted(actor=text),
        Wanted(uid=text),
    ]


def _network(text: str) -> addresses.Network | None:
    """An address or a CIDR, whose host bits do not matter here."""
    with contextlib.suppress(errors.InvalidInput):
        address = addresses.parse_address(text, source=addresses.InputSource.TEXT)
        return ip_network(address)
    try:
        return addresses.parse_cidr(text, source=addresses.InputSource.TEXT, allow_short=True)
    except errors.InvalidInput as error:
        return ip_network(text.strip(), strict=False) if error.code == "host_bits_set" else None


def search(
    alternatives: list[Wanted], *, user: Any = None, below: int | None = None, limit: int = 100
) -> Found:
    """Events that are about any of the alternatives and that the user may see (None: all)."""
    deadline = time.monotonic() + SECONDS
    ids: set[int] = set()
    floor = 0
    for wanted in alternatives:
        found, reached = _numbers(wanted, user, below, limit + 1, deadline)
        ids |= set(found)
        floor = max(floor, reached)
    newest = sorted((one for one in ids if one > floor), reverse=True)
    more = newest[limit - 1] if len(newest) > limit else None
    rows = Event.objects.filter(pk__in=newest[:limit]).order_by("-id") if newest else ()
    events = [_told(one, user) for one in rows]
    return Found(events, more or (floor + 1 if floor else None))


def changes(events: list[Event], *, user: Any = None) -> dict[int, snapshots.Change]:
    """The state before and after each event, as far as the user may know it."""
    found = snapshots.of([(one.table, one.pk) for one in events])
    if _sees(user):
        return found
    return {number: _own(change) for number, change in found.items()}


def _sees(user: Any) -> bool:
    return user is None or bool(user.has_perm(SEE))


def _told(event: Event, user: Any) -> Event:
    """To VM owners it is not told which pool it was, nor what others had in mind."""
    if not _sees(user):
        event.pool_id = None
        if event.actor != user.get_username():
            event.actor = event.request_id = event.reason = ""
    return event


def _own(change: snapshots.Change) -> snapshots.Change:
    before, after = change.before, change.after
    moved = before and after and before.get("namespace") != after.get("namespace")
    return replace(change, before=None) if moved else change


def _numbers(
    wanted: Wanted, user: Any, below: int | None, limit: int, deadline: float
) -> tuple[list[int], int]:
    """(numbers, newest first; the number beneath which was not looked, 0: all was looked through)."""
    limited = not _sees(user)
    if limited and wanted.actor not in {"", user.get_username()}:
        return [], 0  # as they are not told who else it was
    low, high = event_numbers.within(wanted.since, wanted.until)
    if below is not None:
        high = min(high, below - 1)
    tried = (_rows(searcher, wanted, user) for searcher in SEARCHERS)
    queries = [rows for rows in tried if rows is not None]
    spans = [[(low, high)]] if limited else _spans(wanted, low, high)
    found: list[int] = []
    for together in spans:
        inside = Q()
        for after, through in together:
            inside |= Q(pgh_id__gt=after, pgh_id__lte=through)
        parts = [list(rows.filter(inside)[: limit - len(found)]) for rows in queries]
        found += list(heapq.merge(*parts, reverse=True))[: limit - len(found)]
        if len(found) >= limit or limited:
            break
        if time.monotonic() > deadline:
            return found, together[-1][0]
    return found, 0


def _spans(wanted: Wanted, low: int, high: int) -> Iterable[list[event_numbers.Span]]:
    """Where to look, newest first: some numbers at a time, when no index leads to the rows.

    Not for those who see only their own, who have the indexes of their namespaces: where a search stops
    would tell where the events of others are.
    """
    if wanted.named:
        return event_numbers.naming(wanted.named, (low, high))
    return [[(low, high)]] if wanted.indexed else event_numbers.slices((low, high))


def _rows(searcher: Searcher, wanted: Wanted, user: Any) -> Any:
    """The numbers of a table's events that are wanted, newest first; None: there are none."""
    if wanted.kind and wanted.kind != searcher.kind:
        return None
    seen, matching, alike = searcher.seen(user), searcher.match(wanted), _alike(searcher, wanted)
    if seen is None or matching is None or alike is None:
        return None
    rows = searcher.model.objects.filter(seen & matching & alike).order_by("-pgh_id")
    return rows.values_list("pgh_id", flat=True)


def _alike(searcher: Searcher, wanted: Wanted) -> Q | None:
    columns = {field.name for field in searcher.model._meta.concrete_fields}
    found = Q()
    for name, column in (("org", "org"), ("env", "env"), ("uid", _uid(columns))):
        value = getattr(wanted, name)
        if value and column not in columns:
            return None
        if value:
            found &= Q(**{column: value})
    if wanted.actor:
        found &= Q(pgh_context__actor=wanted.actor)
    if wanted.object_id is not None:
        found &= Q(pgh_obj_id=wanted.object_id)
    if wanted.since is not None:
        found &= Q(pgh_created_at__gte=wanted.since)
    if wanted.until is not None:
        found &= Q(pgh_created_at__lt=wanted.until)
    return found


def _uid(columns: set[str]) -> str:
    return "vm_uid" if "vm_uid" in columns else "holder_uid"


def around(network: addresses.Network) -> list[str]:
    """The CIDRs that hold a network, and itself."""
    shortest = addresses.SHORTEST_PREFIX[network.version]
    base = network.network_address
    lengths = range(min(shortest, network.prefixlen), network.prefixlen + 1)
    return [str(ip_network((base, length), strict=False)) for length in lengths]


def inside(network: addresses.Network) -> tuple[str, str]:
    """The least and the greatest CIDR in a network, as an index orders them."""
    return str(network), f"{network.broadcast_address}/{network.max_prefixlen}"


def about(wanted: Wanted, *, name: str = "", cluster: str = "") -> Q | None:
    """Rows of what no holder has: by the columns of its name and its cluster."""
    if wanted.network or wanted.mac or wanted.holder or wanted.holder_kind or wanted.vm:
        return None
    if (wanted.name and not name) or (wanted.cluster_id is not None and not cluster):
        return None
    found = Q(**{name: wanted.name}) if wanted.name else Q()
    return found & Q(**{cluster: wanted.cluster_id}) if wanted.cluster_id is not None else found


def kinds() -> Iterator[str]:
    """The words that `Wanted.kind` may be."""
    return (one.kind for one in SEARCHERS)
