"""Query parameters that name a cluster, a pool, or a time of the history."""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q

from pools.core import errors
from pools.models import Cluster, Pool
from pools.register.history import addresses as history_addresses


def past(value: str, name: str) -> datetime:
    """A time like `moment` that is not ahead."""
    return history_addresses.parse_past_time(value, field=name)


def cluster(value: str, name: str) -> Cluster:
    """A cluster by name or id."""
    found = find_cluster(value)
    if found is None:
        raise errors.InvalidInput.for_field(
            name, "unknown_cluster", "there is no such cluster", value
        )
    return found


def past_or_present(value: str, name: str) -> int:
    """The id of a cluster by name or id, or of the last one of that name that was forgotten."""
    former = None if find_cluster(value) else history_addresses.find_former_cluster(value)
    return former or cluster(value, name).pk


def find_cluster(value: str) -> Cluster | None:
    """By name first, then by id."""
    if "\0" in value:  # PostgreSQL has no such text
        return None
    named = Cluster.objects.filter(name=value).first()
    if named is None and value.isascii() and value.isdigit() and len(value) < 18:
        return Cluster.objects.filter(pk=int(value)).first()
    return named


def pools(value: str, name: str) -> list[int]:
    """The ids of the pools with that id or name (one name may stand in several clusters)."""
    wanted = Q(name=value)
    if value.isascii() and value.isdigit() and len(value) < 18:
        wanted |= Q(pk=int(value))
    found = list(Pool.objects.filter(wanted).values_list("pk", flat=True))
    if not found:
        raise errors.InvalidInput.for_field(name, "unknown_pool", "there is no such pool", value)
    return found
