"""The history of VM networks: which events are about an address, a MAC, a VM; who named them when."""

from __future__ import annotations

import contextlib
from dataclasses import replace
from datetime import datetime
from ipaddress import ip_interface, ip_network
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
    VMImportEvent,
    WaveEvent,
)
from pools.core import addresses, errors
from pools.models import ClusterEvent
from pools.platform.history import search
from pools.platform.history.search import HistoryQuery, Searcher

MOST = 1000  # events of a MAC or a VM
SMALL = 256  # addresses of a CIDR that are looked for one by one
_VIEW = {EntryEvent: "claims.view_entry", IPAMClaimEvent: "claims.view_ipamclaim"}


def read(text: str) -> HistoryQuery | None:
    """A MAC address in any spelling."""
    with contextlib.suppress(errors.InvalidInput):
        return HistoryQuery(mac=macs.parse_mac(text, lenient=True))
    return None


def _of_entries(criteria: HistoryQuery) -> Q | None:
    query = _of_vms(replace(criteria, cluster_id=None), "ips")
    if query is None or criteria.cluster_id is None:
        return query
    return query & _in_ippools(criteria.cluster_id)


def _of_claims(criteria: HistoryQuery) -> Q | None:
    query = _of_vms(criteria, "ips")
    by_name = bool(criteria.name) and query is None
    if by_name:
        query = _of_vms(replace(criteria, name=""), "ips")
    if query is None:
        return None
    if by_name:
        query &= Q(name=criteria.name)
    return query & Q(cluster_id=criteria.cluster_id) if criteria.cluster_id is not None else query


def _of_vms(criteria: HistoryQuery, addresses_of: str) -> Q | None:
    """Rows that tell of the MAC, the VM or an address."""
    if criteria.name:
        return None
    query = Q()
    if criteria.network is not None:
        within = _texts(criteria.network)
        if within is None:
            return None
        query &= Q(**{f"{addresses_of}__overlap": within})
    if criteria.mac:
        query &= Q(mac=criteria.mac)
    if criteria.vm:
        query &= _vm(criteria.vm)
    if criteria.holder or criteria.holder_kind:
        return _of_holder(criteria, query)
    return query


def _of_holder(criteria: HistoryQuery, query: Q) -> Q | None:
    """A VM holds addresses as `namespace/name`, one without a name as its MAC."""
    if criteria.holder_kind == "mac" or (criteria.holder and read(criteria.holder)):
        mac = read(criteria.holder)
        return query & Q(mac=mac.mac) if mac else None
    if criteria.holder_kind not in {"", "vm"}:
        return None
    return query & _vm(criteria.holder) if criteria.holder else query & ~Q(vm="")


def _vm(text: str) -> Q:
    namespace, slash, name = text.partition("/")
    return Q(namespace=namespace, vm=name) if slash else Q(vm=text)


def _texts(network: addresses.Network) -> list[str] | None:
    """The addresses as entries write them, with every prefix length that a network has or had.

    None of a CIDR with more addresses than one would look for one by one.
    """
    if network.num_addresses > SMALL:
        return None
    lengths = _lengths(network.version)
    return [f"{address}/{length}" for address in network for length in lengths]


def _lengths(version: int) -> list[int]:
    rows = [*Network.objects.values_list("subnets", flat=True).distinct()]
    rows += NetworkEvent.objects.values_list("subnets", flat=True).distinct()
    networks = {ip_network(text, strict=False) for subnets in rows for text in subnets}
    host_lengths = {32 if version == 4 else 128}
    return sorted(
        host_lengths | {network.prefixlen for network in networks if network.version == version}
    )


def _in_ippools(cluster_id: int) -> Q:
    """Entries of the IPPools that a cluster has or had."""
    now = IPPool.objects.filter(cluster_id=cluster_id).values("pk")
    ever = IPPoolEvent.objects.filter(cluster_id=cluster_id).values("pgh_obj_id")
    return Q(ippool_id__in=now) | Q(ippool_id__in=ever)


# --- who sees what --------------------------------------------------------------------------------


def _seen_entries(user: Any) -> Q | None:
    return _visible_query(user, EntryEvent, _in_ippools)


def _seen_claims(user: Any) -> Q | None:
    return _visible_query(user, IPAMClaimEvent, lambda cluster: Q(cluster_id=cluster))


def _visible_query(user: Any, model: Any, within: Any) -> Q | None:
    """All for who sees the events; for others what is of namespaces that they see."""
    if user is None or user.has_perm(search.VIEW_EVENTS):
        return Q()
    if not user.has_perm(_VIEW[model]):
        return None
    scope = access_namespaces.scope(user)
    if scope.everything:
        return Q()
    query = Q(pk__in=[])
    for cluster_id, namespaces in scope.namespaces.items():
        query |= within(cluster_id) & Q(namespace__in=sorted(namespaces))
    return query


def _name_searcher(model: Any, kind: str, name: str = "name") -> Searcher:
    return Searcher(
        model,
        kind,
        lambda criteria: search.filter_by_name(criteria, name=name, cluster="cluster_id"),
    )


SEARCHERS: tuple[Searcher, ...] = (
    Searcher(EntryEvent, "entry", _of_entries, _seen_entries),
    Searcher(IPAMClaimEvent, "ipamclaim", _of_claims, _seen_claims),
    _name_searcher(NetworkEvent, "network"),
    _name_searcher(IPPoolEvent, "ippool"),
    _name_searcher(VMImportEvent, "import", "file_name"),
    _name_searcher(WaveEvent, "wave"),
    _name_searcher(MembershipEvent, "membership", ""),
    _name_searcher(NetworkSettingsEvent, "network_settings", ""),
)


# --- who named what at a time ---------------------------------------------------------------------


def named_at(text: str, cluster_id: int | None, moment: datetime) -> list[dict[str, Any]]:
    """The addresses that entries and claims named for a MAC or a VM at that moment."""
    criteria = read(text) or HistoryQuery(vm=text)
    criteria = replace(criteria, cluster_id=cluster_id)
    rows = []
    for model, match, word in (
        (EntryEvent, _of_entries, "entry"),
        (IPAMClaimEvent, _of_claims, "claim"),
    ):
        query = match(criteria)
        if query is not None:
            rows += [_row(event, word) for event in _last(model, query, moment)]
    return [row for row in rows if row["address"]]


def _last(model: Any, matching: Q, moment: datetime) -> list[Any]:
    """The last event of each object until then, as far as it still matched and was there."""
    touched = model.objects.filter(matching, pgh_created_at__lte=moment).order_by("-pgh_id")
    objects = list(dict.fromkeys(touched.values_list("pgh_obj_id", flat=True)[:MOST]))
    rows = model.objects.filter(pgh_obj_id__in=objects, pgh_created_at__lte=moment)
    last = list(
        rows.order_by("pgh_obj_id", "-pgh_id").distinct("pgh_obj_id").values_list("pk", flat=True)
    )
    last_events = model.objects.filter(matching, pk__in=last).exclude(pgh_label="deleted")
    return list(last_events.order_by("pk"))


def _row(event: Any, word: str) -> dict[str, Any]:
    cluster = _cluster(event)
    return {
        "address": [str(ip_interface(text).ip) for text in event.ips],
        "state": word,
        "holder_kind": "vm" if event.vm else "mac",
        "holder_id": f"{event.namespace}/{event.vm}".strip("/") if event.vm else str(event.mac),
        "holder_uid": getattr(event, "vm_uid", ""),
        "mac": str(event.mac or ""),
        "cluster": cluster,
        "since": event.pgh_created_at,
    }


def _cluster(event: Any) -> str:
    cluster_id = getattr(event, "cluster_id", None)
    if cluster_id is None:
        ippool_events = IPPoolEvent.objects.filter(pgh_obj_id=event.ippool_id).order_by("-pgh_id")
        cluster_id = ippool_events.values_list("cluster_id", flat=True).first()
    cluster_events = ClusterEvent.objects.filter(pgh_obj_id=cluster_id or 0).order_by("-pgh_id")
    return cluster_events.values_list("name", flat=True).first() or ""
