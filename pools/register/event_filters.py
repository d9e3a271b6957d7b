"""Filters of the event log by pool and by cluster.

The view reads both through other tables for the events of some large tables. As a condition this would be
done for each event; here it is done once, for the rows that the events refer to.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any

from django.db.models import OuterRef, Q, QuerySet, Subquery
from django.db.models.lookups import In

from pools.models import BlockEvent, Event, FailureEvent, Pool, PoolEvent
from pools.platform import database

MOST = 10_000  # ids of events in a statement


@dataclass(frozen=True)
class Reference:
    """A large event table, and its column that leads to a pool or a cluster.

    `of_pools` and `of_cluster` return the values of the column; they are None if the table itself has the
    pool or the cluster.
    """

    model: Any
    column: str
    of_pools: Callable[[Collection[int]], Collection[int]] | None = None
    of_cluster: Callable[[int], Collection[int]] | None = None


def pools_of_cluster(cluster_id: int) -> set[int]:
    """Return the ids of the pools that a cluster has or had."""
    deleted = PoolEvent.objects.filter(cluster_id=cluster_id).values_list("pgh_obj_id", flat=True)
    return {*Pool.objects.filter(cluster_id=cluster_id).values_list("pk", flat=True), *deleted}


REFERENCES = [  # pools.extension adds those of other apps
    Reference(BlockEvent, "pool_id", of_cluster=pools_of_cluster),
    Reference(FailureEvent, "pgh_obj_id", of_cluster=pools_of_cluster),
]


def of_pools(rows: QuerySet[Event], pool_ids: Collection[int]) -> QuerySet[Event]:
    """Return the events of some pools."""
    values = {
        reference: reference.of_pools(pool_ids) for reference in REFERENCES if reference.of_pools
    }
    return rows.filter(_query(Q(pool_id__in=pool_ids), values))


def of_cluster(rows: QuerySet[Event], cluster_id: int) -> QuerySet[Event]:
    """Return the events of a cluster."""
    values = {
        reference: reference.of_cluster(cluster_id)
        for reference in REFERENCES
        if reference.of_cluster
    }
    return rows.filter(_query(Q(cluster_id=cluster_id), values))


def _query(direct: Q, values: dict[Reference, Collection[int]]) -> Q:
    tables = [reference.model._meta.model_name for reference in values]
    query = ~Q(table__in=tables) & direct
    for (reference, column_values), table in zip(values.items(), tables, strict=True):
        query |= Q(table=table) & _events(reference, column_values)
    return query


def _events(reference: Reference, column_values: Collection[int]) -> Q:
    """Return the condition for the events of a table with these values: their ids, unless they are many."""
    if reference.column == "pool_id":  # a column of the view
        return Q(pool_id__in=column_values)
    events = reference.model.objects.filter(**{f"{reference.column}__in": column_values})
    with database.in_parallel():
        ids = list(events.values_list("pgh_id", flat=True)[: MOST + 1])
    if len(ids) <= MOST:
        return Q(pk__in=ids)
    # Not EXISTS, for which PostgreSQL would read the whole table first.
    row = reference.model.objects.filter(pgh_id=OuterRef("id"))
    return Q(In(Subquery(row.values(reference.column)), sorted(column_values)))
