"""Clusters and pools by their names or ids, of parameters, bodies and paths."""

from pools.core import errors, holders
from pools.models import Cluster, Pool
from pools.register.history import addresses as history_addresses


def cluster(value: str, name: str) -> Cluster:
    """Return the cluster with this name or id. Raises InvalidInput (unknown_cluster)."""
    row = find_cluster(value)
    if row is None:
        raise unknown_cluster(value, name)
    return row


def unknown_cluster(value: object, name: str) -> errors.InvalidInput:
    """Return the same error for a missing cluster and for one that the user may not know."""
    return errors.InvalidInput.for_field(name, "unknown_cluster", "there is no such cluster", value)


def cluster_by_name(value: object, field: str) -> Cluster:
    """Return the cluster that a body names. Raises InvalidInput."""
    return cluster(holders.parse_name(value, field=field), field)


def current_or_former_cluster_id(value: str, name: str) -> int:
    """Return the id of the cluster with this name or id, else of the last removed one of that name.

    Raises InvalidInput (unknown_cluster).
    """
    former = None if find_cluster(value) else history_addresses.find_former_cluster(value)
    return former or cluster(value, name).pk


def find_cluster(value: str) -> Cluster | None:
    """Return the cluster with this name, else the one with this id, else None."""
    if "\0" in value:  # PostgreSQL text cannot contain it
        return None
    row = Cluster.objects.filter(name=value).first()
    if row is None and _is_id(value):
        return Cluster.objects.filter(pk=int(value)).first()
    return row


def _is_id(value: str) -> bool:
    return value.isascii() and value.isdigit() and len(value) < 18


def get_pool(pool_id: int) -> Pool:
    """Return a pool with its cluster. Raises NotFound."""
    pool = Pool.objects.select_related("cluster").filter(pk=pool_id).first()
    if pool is None:
        raise errors.NotFound("There is no such pool.")
    return pool


def pools(value: str, name: str) -> list[int]:
    """Return the ids of the pools with this name, else of the one with this id.

    Several clusters may use the same name. Raises InvalidInput (unknown_pool).
    """
    ids = list(Pool.objects.filter(name=value).values_list("pk", flat=True))
    if not ids and _is_id(value):
        ids = list(Pool.objects.filter(pk=int(value)).values_list("pk", flat=True))
    if not ids:
        raise errors.InvalidInput.for_field(name, "unknown_pool", "there is no such pool", value)
    return ids
