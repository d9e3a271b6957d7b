"""Search conditions for the event tables of pools."""

from dataclasses import replace

from django.db.models import Q

from pools import models
from pools.platform.history.search import (
    HistoryQuery,
    Searcher,
    cidr_bounds,
    containing_cidrs,
    filter_by_name,
)


def _block_condition(criteria: HistoryQuery) -> Q | None:
    if criteria.mac or criteria.name:
        return None
    condition = _holder_condition(criteria)
    if criteria.network is not None:
        low, high = cidr_bounds(criteria.network)
        within = Q(cidr__gte=low, cidr__lte=high)
        host = criteria.network.prefixlen == criteria.network.max_prefixlen
        held = Q(cidr__in=containing_cidrs(criteria.network))
        condition &= held if host else held | within
    if criteria.cluster_id is not None:
        spaces = models.AddressSpace.objects.filter(cluster=criteria.cluster_id).values("pk")
        pools = models.PoolEvent.objects.filter(cluster_id=criteria.cluster_id).values("pgh_obj_id")
        condition &= Q(space_id__in=spaces) | Q(pool_id__in=pools)
    return condition


def _holder_condition(criteria: HistoryQuery) -> Q:
    condition = Q()
    if criteria.holder:
        condition &= Q(holder_id=criteria.holder)
    if criteria.vm:
        condition &= Q(holder_id=criteria.vm, holder_kind="vm")
    if criteria.holder_kind:
        condition &= Q(holder_kind=criteria.holder_kind)
    return condition


def _failure_condition(criteria: HistoryQuery) -> Q | None:
    if criteria.network or criteria.mac or criteria.name:
        return None
    condition = _holder_condition(criteria)
    if criteria.cluster_id is not None:
        pools = models.PoolEvent.objects.filter(cluster_id=criteria.cluster_id).values("pgh_obj_id")
        condition &= Q(pgh_obj_id__in=pools)
    return condition


def _cidr_condition(criteria: HistoryQuery) -> Q | None:
    condition = filter_by_name(replace(criteria, network=None, cluster_id=None))
    if condition is None:
        return None
    if criteria.network is not None:
        condition &= Q(cidr__net_overlaps=str(criteria.network))
    return condition & _cluster_pools_condition(criteria)


def _range_condition(criteria: HistoryQuery) -> Q | None:
    condition = filter_by_name(replace(criteria, network=None, cluster_id=None))
    if condition is None:
        return None
    if criteria.network is not None:
        first, last = criteria.network.network_address, criteria.network.broadcast_address
        condition &= Q(first__lte=str(last), last__gte=str(first))
    return condition & _cluster_pools_condition(criteria)


def _cluster_pools_condition(criteria: HistoryQuery) -> Q:
    if criteria.cluster_id is None:
        return Q()
    pools = models.PoolEvent.objects.filter(cluster_id=criteria.cluster_id).values("pgh_obj_id")
    return Q(pool_id__in=pools)


def _container_condition(criteria: HistoryQuery) -> Q | None:
    condition = filter_by_name(replace(criteria, network=None, cluster_id=None), name="name")
    if condition is None:
        return None
    if criteria.network is not None:
        condition &= Q(cidr__net_overlaps=str(criteria.network))
    if criteria.cluster_id is not None:
        condition &= Q(space__cluster=criteria.cluster_id)
    return condition


SEARCHERS = (
    Searcher(models.BlockEvent, "block", _block_condition),
    Searcher(models.FailureEvent, "failure", _failure_condition),
    Searcher(
        models.PoolEvent,
        "pool",
        lambda criteria: filter_by_name(criteria, name="name", cluster="cluster_id"),
    ),
    Searcher(models.PoolCIDREvent, "cidr", _cidr_condition),
    Searcher(models.ReservedRangeEvent, "range", _range_condition),
    Searcher(
        models.ClusterEvent,
        "cluster",
        lambda criteria: filter_by_name(criteria, name="name", cluster="pgh_obj_id"),
    ),
    Searcher(
        models.ConnectionEvent,
        "connection",
        lambda criteria: filter_by_name(criteria, cluster="cluster_id"),
    ),
    Searcher(
        models.EnvironmentEvent,
        "environment",
        lambda criteria: filter_by_name(criteria, name="env", cluster="cluster_id"),
    ),
    Searcher(
        models.JournalEntryEvent,
        "journal",
        lambda criteria: filter_by_name(criteria, cluster="cluster_id"),
    ),
    Searcher(models.ContainerEvent, "container", _container_condition),
    Searcher(
        models.WebhookTargetEvent, "webhook", lambda criteria: filter_by_name(criteria, name="name")
    ),
    Searcher(
        models.ImportEvent,
        "import",
        lambda criteria: filter_by_name(criteria, name="file_name", cluster="cluster_id"),
    ),
)
