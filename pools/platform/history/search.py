"""Search the history: what happened to an address, a network, a holder or an organization, when, and by whom.

Each event table has a searcher, which returns the filter that a query means for this table. Other apps
register their searchers. The indexes of the tables find the rows.
"""

import contextlib
import heapq
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import ip_network
from typing import Any

from django.db.models import Q

from pools.core import addresses, errors
from pools.models import Event
from pools.platform.history import event_numbers, representation

# Time limit of one search in seconds; after it the page shows partial results and where to continue.
TIME_LIMIT = 2.0
VIEW_EVENTS = "pools.view_event"
# A user with any of these permissions may search; each searcher limits what the user sees.
PERMISSIONS: list[str] = []  # filled by pools.extension


def is_permitted(user: Any) -> bool:
    """Return True if the user may search the history."""
    return any(user.has_perm(name) for name in PERMISSIONS)


@dataclass(frozen=True)
class HistoryQuery:
    """The criteria of a search; an event matches if it meets all that are set.

    `network` is an address (/32, /128) or a CIDR: it matches events of blocks inside and around it. `vm`
    is `namespace/name` or a name. `kind` is the first word of an event's type (`entry`, `import`,
    `pool`), and `object_id` the id of one object of this kind. `since` is included, `until` is not.
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
    name: str = ""  # of a pool, a cluster, a network, an import's file or another object
    cluster_id: int | None = None
    kind: str = ""
    object_id: int | None = None
    since: datetime | None = None
    until: datetime | None = None

    @property
    def indexed(self) -> bool:
        """True if an index of each large event table finds the matching rows."""
        named = self.network or self.mac or self.holder or self.vm or self.name or self.object_id
        return bool(named or self.uid or self.org or self.env or self.actor)


def all_events(user: Any) -> Q | None:
    """Return the filter of a table that only users with permission to view events may see."""
    return Q() if _sees_events(user) else None


@dataclass(frozen=True)
class Searcher:
    """One event table.

    `match` returns the filter for the network, mac, holder, vm, name and cluster of a query, or None if no
    row can match; the other criteria are applied to every table alike. `visible` returns the filter for
    what a user may see, or None if the user may see no row.
    """

    model: Any
    kind: str
    match: Callable[[HistoryQuery], Q | None]
    visible: Callable[[Any], Q | None] = all_events


@dataclass(frozen=True)
class HistoryPage:
    """Events, newest first. `below` continues the search at smaller event numbers; None at the end."""

    events: list[Event]
    below: int | None


# What a text can mean besides an address or a name; each returns None for a text it does not recognize.
TEXT_READERS: list[Callable[[str], HistoryQuery | None]] = []  # filled by pools.extension
SEARCHERS: list[Searcher] = []  # filled by pools.extension


def queries_of_text(text: str) -> list[HistoryQuery]:
    """Return the queries that `text` can mean; an event that matches any of them is a result."""
    network = _network(text)
    if network is not None:
        return [HistoryQuery(network=network)]
    for reader in TEXT_READERS:
        query = reader(text)
        if query is not None:
            return [query, HistoryQuery(holder=query.mac)]
    return [
        HistoryQuery(holder=text),
        HistoryQuery(vm=text),
        HistoryQuery(name=text),
        HistoryQuery(org=text),
        HistoryQuery(env=text),
        HistoryQuery(actor=text),
        HistoryQuery(uid=text),
    ]


def _network(text: str) -> addresses.Network | None:
    """Return the network that a text names, or None; host bits of a CIDR are ignored."""
    with contextlib.suppress(errors.InvalidInput):
        address = addresses.parse_address(text, source=addresses.InputSource.TEXT)
        return ip_network(address)
    try:
        return addresses.parse_cidr(text, source=addresses.InputSource.TEXT, allow_short=True)
    except errors.InvalidInput as error:
        return ip_network(text.strip(), strict=False) if error.code == "host_bits_set" else None


def search(
    alternatives: list[HistoryQuery],
    *,
    user: Any = None,
    below: int | None = None,
    limit: int = 100,
) -> HistoryPage:
    """Return the newest events that match any of the queries and that the user may see (None: all).

    Only events with a number smaller than `below` are searched. The search ends at TIME_LIMIT.
    """
    deadline = time.monotonic() + TIME_LIMIT
    ids: set[int] = set()
    floor = 0
    for query in alternatives:
        numbers, searched_to = _matching_numbers(query, user, below, limit + 1, deadline)
        ids |= set(numbers)
        floor = max(floor, searched_to)
    newest = sorted((number for number in ids if number > floor), reverse=True)
    more = newest[limit - 1] if len(newest) > limit else None
    rows = Event.objects.filter(pk__in=newest[:limit]).order_by("-id") if newest else ()
    events = [_redact(event, user) for event in rows]
    return HistoryPage(events, more or (floor + 1 if floor else None))


def changes(events: list[Event], *, user: Any = None) -> dict[int, representation.Change]:
    """Return the state before and after each event by its number, as far as the user may see it."""
    state_changes = representation.read_changes([(event.table, event.pk) for event in events])
    if _sees_events(user):
        return state_changes
    return {number: _visible_change(change) for number, change in state_changes.items()}


def _sees_events(user: Any) -> bool:
    return user is None or bool(user.has_perm(VIEW_EVENTS))


def _redact(event: Event, user: Any) -> Event:
    """Remove the pool and the authorship of others from an event that a VM owner reads."""
    if not _sees_events(user):
        event.pool_id = None
        if event.actor != user.get_username():
            event.actor = event.request_id = event.reason = ""
    return event


def _visible_change(change: representation.Change) -> representation.Change:
    before, after = change.before, change.after
    is_move = before and after and before.get("namespace") != after.get("namespace")
    return replace(change, before=None) if is_move else change


def _matching_numbers(
    query: HistoryQuery, user: Any, below: int | None, limit: int, deadline: float
) -> tuple[list[int], int]:
    """Return the event numbers that match, newest first, and the number at which the search stopped.

    Events up to and including this second number were not searched; 0 if the search was complete. What no index
    finds is searched slice by slice, but not for a user who sees only some of the events: the number at which a
    search stops would reveal where the events of other people are.
    """
    limited = not _sees_events(user)
    if limited and query.actor not in {"", user.get_username()}:
        return [], 0  # a VM owner does not learn who else acted
    after_number, through = event_numbers.span_between(query.since, query.until)
    if below is not None:
        through = min(through, below - 1)
    table_queries = [_table_numbers(searcher, query, user) for searcher in SEARCHERS]
    queries = [rows for rows in table_queries if rows is not None]
    span = (after_number, through)
    numbers: list[int] = []
    for first, last in [span] if limited or query.indexed else event_numbers.slices(span):
        inside = Q(pgh_id__gt=first, pgh_id__lte=last)
        parts = [list(rows.filter(inside)[: limit - len(numbers)]) for rows in queries]
        numbers += list(heapq.merge(*parts, reverse=True))[: limit - len(numbers)]
        if len(numbers) >= limit:
            break
        if first > after_number and time.monotonic() > deadline:
            return numbers, first
    return numbers, 0


def _table_numbers(searcher: Searcher, query: HistoryQuery, user: Any) -> Any:
    """Return the matching event numbers of a table, newest first; None if no row can match."""
    if query.kind and query.kind != searcher.kind:
        return None
    visible, matching, common = (
        searcher.visible(user),
        searcher.match(query),
        _common_filter(searcher, query),
    )
    if visible is None or matching is None or common is None:
        return None
    rows = searcher.model.objects.filter(visible & matching & common).order_by("-pgh_id")
    return rows.values_list("pgh_id", flat=True)


def _common_filter(searcher: Searcher, query: HistoryQuery) -> Q | None:
    columns = {field.name for field in searcher.model._meta.concrete_fields}
    conditions = Q()
    for name, column in (("org", "org"), ("env", "env"), ("uid", _uid(columns))):
        value = getattr(query, name)
        if value and column not in columns:
            return None
        if value:
            conditions &= Q(**{column: value})
    if query.actor:
        conditions &= Q(pgh_context__actor=query.actor)
    if query.object_id is not None:
        conditions &= Q(pgh_obj_id=query.object_id)
    if query.since is not None:
        conditions &= Q(pgh_created_at__gte=query.since)
    if query.until is not None:
        conditions &= Q(pgh_created_at__lt=query.until)
    return conditions


def _uid(columns: set[str]) -> str:
    return "vm_uid" if "vm_uid" in columns else "holder_uid"


def containing_cidrs(network: addresses.Network) -> list[str]:
    """Return the CIDRs that contain a network, the network included, shortest prefix first."""
    shortest = addresses.SHORTEST_PREFIX[network.version]
    base = network.network_address
    lengths = range(min(shortest, network.prefixlen), network.prefixlen + 1)
    return [str(ip_network((base, length), strict=False)) for length in lengths]


def cidr_bounds(network: addresses.Network) -> tuple[str, str]:
    """Return the least and the greatest CIDR inside a network, in the order of an index."""
    return str(network), f"{network.broadcast_address}/{network.max_prefixlen}"


def filter_by_name(query: HistoryQuery, *, name: str = "", cluster: str = "") -> Q | None:
    """Return the filter of a table of objects that are no holders, by its name and cluster columns.

    None if no row can match: the query has criteria that only holders have, or a column is missing.
    """
    if query.network or query.mac or query.holder or query.holder_kind or query.vm:
        return None
    if (query.name and not name) or (query.cluster_id is not None and not cluster):
        return None
    condition = Q(**{name: query.name}) if query.name else Q()
    return (
        condition & Q(**{cluster: query.cluster_id}) if query.cluster_id is not None else condition
    )


def kinds() -> Iterator[str]:
    """Return the values that `HistoryQuery.kind` can have."""
    return (searcher.kind for searcher in SEARCHERS)
