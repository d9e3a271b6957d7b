"""Which events of the register's own tables a search finds."""

from __future__ import annotations

from dataclasses import replace

from django.db.models import Q

from pools.models import (
    AddressSpace,
    BlockEvent,
    ClusterEvent,
    ConnectionEvent,
    FailureEvent,
    PoolCIDREvent,
    PoolEvent,
    ReservedRangeEvent,
    WebhookTargetEvent,
)
from pools.platform.history.search import Searcher, Wanted, about, around, inside


def _of_blocks(wanted: Wanted) -> Q | None:
    if wanted.mac or wanted.name:
        return None
    found = _of_holder(wanted)
    if wanted.network is not None:
        low, high = inside(wanted.network)
        within = Q(cidr__gte=low, cidr__lte=high)
        host = wanted.network.prefixlen == wanted.network.max_prefixlen
        held = Q(cidr__in=around(wanted.network))
        found &= held if host else held | within
    if wanted.cluster_id is not None:
        spaces = AddressSpace.objects.filter(cluster=wanted.cluster_id).values("pk")
        pools = PoolEvent.objects.filter(cluster_id=wanted.cluster_id).values("pgh_obj_id")
        found &= Q(space_id__in=spaces) | Q(pool_id__in=pools)
    return found


def _of_holder(wanted: Wanted) -> Q:
    found = Q()
    if wanted.holder:
        found &= Q(holder_id=wanted.holder)
    if wanted.vm:
        found &= Q(holder_id=wanted.vm, holder_kind="vm")
    if wanted.holder_kind:
        found &= Q(holder_kind=wanted.holder_kind)
    return found


def _of_failures(wanted: Wanted) -> Q | None:
    if wanted.network or wanted.mac or wanted.name:
        return None
    found = _of_holder(wanted)
    if wanted.cluster_id is not None:
        pools = PoolEvent.objects.filter(cluster_id=wanted.cluster_id).values("pgh_obj_id")
        found &= Q(pgh_obj_id__in=pools)
    return found


def _of_cidrs(wanted: Wanted) -> Q | None:
    found = about(replace(wanted, network=None, cluster_id=None))
    if found is None:
        return None
    if wanted.network is not None:
        found &= Q(cidr__net_overlaps=str(wanted.network))
    return found & _of_pools_in(wanted)


def _of_ranges(wanted: Wanted) -> Q | None:
    found = about(replace(wanted, network=None, cluster_id=None))
    if found is None:
        return None
    if wanted.network is not None:
        first, last = wanted.network.network_address, wanted.network.broadcast_address
        found &= Q(first__lte=str(last), last__gte=str(first))
    return found & _of_pools_in(wanted)


def _of_pools_in(wanted: Wanted) -> Q:
    if wanted.cluster_id is None:
        return Q()
    pools = PoolEvent.objects.filter(cluster_id=wanted.cluster_id).values("pgh_obj_id")
    return Q(pool_id__in=pools)


SEARCHERS = (
    Searcher(BlockEvent, "block", _of_blocks),
    Searcher(FailureEvent, "failure", _of_failures),
    Searcher(PoolEvent, "pool", lambda wanted: about(wanted, name="name", cluster="cluster_id")),
    Searcher(PoolCIDREvent, "cidr", _of_cidrs),
    Searcher(ReservedRangeEvent, "range", _of_ranges),
    Searcher(
        ClusterEvent, "cluster", lambda wanted: about(wanted, name="name", cluster="pgh_obj_id")
    ),
    Searcher(ConnectionEvent, "connection", lambda wanted: about(wanted, cluster="cluster_id")),
    Searcher(WebhookTargetEvent, "webhook", lambda wanted: about(wanted, name="name")),
)
