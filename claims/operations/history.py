"""History of VM networks: events of an address, MAC or VM, and registered addresses at a point in time."""

import contextlib
from dataclasses import replace
from datetime import datetime
from ipaddress import ip_interface, ip_network
from itertools import zip_longest
from typing import Any

from django.db.models import Q

from claims.access import namespaces as access_namespaces
from claims.core import macs
from claims.models import (
    EntryEvent,
    IPAMClaimEvent,
    IPPool,
    IPPoolEvent,
    MembershipEvent,
    Network,
    NetworkEvent,
    NetworkSettingsEvent,
    WaveEvent,
)
from pools.core import addresses, errors
from pools.models import ClusterEvent
from pools.platform.history import search
from pools.platform.history.search import HistoryQuery, Searcher
from pools.register.event_filters import Reference

MOST = 1000  # objects of a MAC or a VM
SMALL = 256  # addresses of a CIDR that can be searched one by one
_VIEW = {EntryEvent: "claims.view_entry", IPAMClaimEvent: "claims.view_ipamclaim"}


def parse_mac_criteria(text: str) -> HistoryQuery | None:
    """Return search criteria for a MAC address in any notation, or None."""
    with contextlib.suppress(errors.InvalidInput):
        return HistoryQuery(mac=macs.parse_mac(text, lenient=True))
    return None


def _entry_query(criteria: HistoryQuery) -> Q | None:
    query = _vm_address_query(replace(criteria, cluster_id=None))
    if query is None or criteria.cluster_id is None:
        return query
    return query & _cluster_ippools_query(criteria.cluster_id)


def _claim_query(criteria: HistoryQuery) -> Q | None:
    query = _vm_address_query(criteria)
    by_name = bool(criteria.name) and query is None
    if by_name:
        query = _vm_address_query(replace(criteria, name=""))
    if query is None:
        return None
    if by_name:
        query &= Q(name=criteria.name)
    return query & Q(cluster_id=criteria.cluster_id) if criteria.cluster_id is not None else query


def _vm_address_query(criteria: HistoryQuery) -> Q | None:
    """Return the filter for events with the MAC, VM or address, or None if none can match."""
    if criteria.name:
        return None
    query = Q()
    if criteria.network is not None:
        addresses_ = address_strings(criteria.network)
        if addresses_ is None:
            return None
        query &= Q(ips__overlap=addresses_)
    if criteria.mac:
        query &= Q(mac=criteria.mac)
    if criteria.vm:
        query &= vm_query(criteria.vm)
    if criteria.holder or criteria.holder_kind:
        return _holder_query(criteria, query)
    return query


def _holder_query(criteria: HistoryQuery, query: Q) -> Q | None:
    """Return the filter by holder: a VM holds addresses as `namespace/name`, an unnamed one as its MAC."""
    if criteria.holder_kind == "mac" or (criteria.holder and parse_mac_criteria(criteria.holder)):
        mac = parse_mac_criteria(criteria.holder)
        return query & Q(mac=mac.mac) if mac else None
    if criteria.holder_kind not in {"", "vm"}:
        return None
    return query & vm_query(criteria.holder) if criteria.holder else query & ~Q(vm="")


def vm_query(text: str) -> Q:
    """Return the filter for events of a VM, `namespace/name` or `name`."""
    namespace, slash, name = text.partition("/")
    return Q(namespace=namespace, vm=name) if slash else Q(vm=text)


def address_strings(network: addresses.Network) -> list[str] | None:
    """Return the addresses of a CIDR with each prefix length that a network has or had.

    Return None for a CIDR with more than SMALL addresses.
    """
    if network.num_addresses > SMALL:
        return None
    lengths = _prefix_lengths(network.version)
    return [f"{address}/{length}" for address in network for length in lengths]


def _prefix_lengths(version: int) -> list[int]:
    rows = [*Network.objects.values_list("subnets", flat=True).distinct()]
    rows += NetworkEvent.objects.values_list("subnets", flat=True).distinct()
    networks = {ip_network(text, strict=False) for subnets in rows for text in subnets}
    host_lengths = {32 if version == 4 else 128}
    return sorted(
        host_lengths | {network.prefixlen for network in networks if network.version == version}
    )


def _cluster_ippools_query(cluster_id: int) -> Q:
    """Return the filter for entries of the IPPools that a cluster has or had."""
    current_ids = IPPool.objects.filter(cluster_id=cluster_id).values("pk")
    past_ids = IPPoolEvent.objects.filter(cluster_id=cluster_id).values("pgh_obj_id")
    return Q(ippool_id__in=current_ids) | Q(ippool_id__in=past_ids)


# --- visibility -----------------------------------------------------------------------------------


def _visible_entries(user: Any) -> Q | None:
    return _visible_query(user, EntryEvent, _cluster_ippools_query)


def _visible_claims(user: Any) -> Q | None:
    return _visible_query(user, IPAMClaimEvent, lambda cluster: Q(cluster_id=cluster))


def _visible_query(user: Any, model: Any, cluster_query: Any) -> Q | None:
    """Return the filter for events that the user sees: all, or those of the user's namespaces."""
    if user is None or user.has_perm(search.VIEW_EVENTS):
        return Q()
    if not user.has_perm(_VIEW[model]):
        return None
    scope = access_namespaces.scope(user)
    if scope.everything:
        return Q()
    query = Q(pk__in=[])
    for cluster_id, namespaces in scope.namespaces.items():
        query |= cluster_query(cluster_id) & Q(namespace__in=sorted(namespaces))
    return query


def _name_searcher(model: Any, kind: str, name: str = "name") -> Searcher:
    return Searcher(
        model,
        kind,
        lambda criteria: search.filter_by_name(criteria, name=name, cluster="cluster_id"),
    )


SEARCHERS: tuple[Searcher, ...] = (
    Searcher(EntryEvent, "entry", _entry_query, _visible_entries),
    Searcher(IPAMClaimEvent, "ipamclaim", _claim_query, _visible_claims),
    _name_searcher(NetworkEvent, "network"),
    _name_searcher(IPPoolEvent, "ippool"),
    _name_searcher(WaveEvent, "wave"),
    _name_searcher(MembershipEvent, "membership", ""),
    _name_searcher(NetworkSettingsEvent, "network_settings", ""),
)


# --- the life of an entry or a claim --------------------------------------------------------------


def past_versions(model: Any, object_id: int, user: Any) -> list[tuple[Any, datetime | None]]:
    """Return the events of an entry or a claim that the user may see, each with the time of the next event.

    `model` is EntryEvent or IPAMClaimEvent; None as the time: the last event.
    """
    events = list(model.objects.filter(pgh_obj_id=object_id).order_by("-pgh_id")[:MOST])[::-1]
    see = _visible_entries if model is EntryEvent else _visible_claims
    condition = see(user)
    if condition is None:
        return []
    shown = set(model.objects.filter(condition, pgh_obj_id=object_id).values_list("pk", flat=True))
    ends = [event.pgh_created_at for event in events[1:]]
    # Those of long ago may be gone, all of them, too.
    return [(event, end) for event, end in zip_longest(events, ends) if event.pk in shown]


# --- addresses at a point in time -----------------------------------------------------------------


def registered_addresses(
    text: str, cluster_id: int | None, timestamp: datetime
) -> list[dict[str, Any]]:
    """Return the addresses that entries and claims had for a MAC or a VM at `timestamp`."""
    criteria = parse_mac_criteria(text) or HistoryQuery(vm=text)
    criteria = replace(criteria, cluster_id=cluster_id)
    rows = []
    for model, match, source in (
        (EntryEvent, _entry_query, "entry"),
        (IPAMClaimEvent, _claim_query, "claim"),
    ):
        query = match(criteria)
        if query is not None:
            rows += [_row(event, source) for event in _last_events(model, query, timestamp)]
    return [row for row in rows if row["address"]]


def _last_events(model: Any, matching: Q, timestamp: datetime) -> list[Any]:
    """Return the last event of each object up to `timestamp`, if it matches and is no deletion."""
    matching_events = model.objects.filter(matching, pgh_created_at__lte=timestamp).order_by(
        "-pgh_id"
    )
    objects = list(dict.fromkeys(matching_events.values_list("pgh_obj_id", flat=True)[:MOST]))
    rows = model.objects.filter(pgh_obj_id__in=objects, pgh_created_at__lte=timestamp)
    last = list(
        rows.order_by("pgh_obj_id", "-pgh_id").distinct("pgh_obj_id").values_list("pk", flat=True)
    )
    last_events = model.objects.filter(matching, pk__in=last).exclude(pgh_label="deleted")
    return list(last_events.order_by("pk"))


def _row(event: Any, source: str) -> dict[str, Any]:
    cluster = _cluster_name(event)
    return {
        "address": [str(ip_interface(text).ip) for text in event.ips],
        "state": source,
        "holder_kind": "vm" if event.vm else "mac",
        "holder_id": f"{event.namespace}/{event.vm}".strip("/") if event.vm else str(event.mac),
        "holder_uid": getattr(event, "vm_uid", ""),
        "mac": str(event.mac or ""),
        "cluster": cluster,
        "since": event.pgh_created_at,
    }


def _cluster_name(event: Any) -> str:
    cluster_id = getattr(event, "cluster_id", None)
    if cluster_id is None:
        ippool_events = IPPoolEvent.objects.filter(pgh_obj_id=event.ippool_id).order_by("-pgh_id")
        cluster_id = ippool_events.values_list("cluster_id", flat=True).first()
    cluster_events = ClusterEvent.objects.filter(pgh_obj_id=cluster_id or 0).order_by("-pgh_id")
    return cluster_events.values_list("name", flat=True).first() or ""


def _ippools_of_cluster(cluster_id: int) -> set[int]:
    """Return the ids of the IPPools that a cluster has or had."""
    deleted = IPPoolEvent.objects.filter(cluster_id=cluster_id).values_list("pgh_obj_id", flat=True)
    return {*IPPool.objects.filter(cluster_id=cluster_id).values_list("pk", flat=True), *deleted}


EVENT_REFERENCES = (
    Reference(
        EntryEvent,
        "ippool_id",
        of_pools=lambda ids: set(
            IPPool.objects.filter(network__pool__in=ids).values_list("pk", flat=True)
        ),
        of_cluster=_ippools_of_cluster,
    ),
    Reference(
        IPAMClaimEvent,
        "network_id",
        of_pools=lambda ids: set(Network.objects.filter(pool__in=ids).values_list("pk", flat=True)),
    ),
)
