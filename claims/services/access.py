"""Who sees which VM networks: everybody with the right to see all namespaces, or by membership.

What somebody may not see does not exist for them: every list, count, search, choice and export goes
through here, and a foreign object is answered like an absent one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Q, QuerySet

from claims.models import NAD, Membership, Network

EVERY_NAMESPACE = "claims.view_every_namespace"


@dataclass(frozen=True)
class Scope:
    """What somebody sees: everything, or some namespaces of some clusters (by id)."""

    everything: bool = False
    namespaces: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def has(self, cluster_id: int, namespace: str) -> bool:
        return self.everything or namespace in self.namespaces.get(cluster_id, ())

    def within(self, cluster: str, namespace: str) -> Q:
        """The rows of these namespaces, by the lookups of a row's cluster id and namespace."""
        found = Q(pk__in=[])
        for cluster_id, names in self.namespaces.items():
            found |= Q(**{cluster: cluster_id, f"{namespace}__in": sorted(names)})
        return found


EVERYTHING = Scope(everything=True)


def scope(user: Any) -> Scope:
    """What the user sees; two statements at most."""
    if user.has_perm(EVERY_NAMESPACE):
        return EVERYTHING
    found: dict[int, frozenset[str]] = {}
    if user.is_authenticated and user.is_active:
        rows = Membership.objects.filter(Q(user=user) | Q(group__in=user.groups.all()))
        for cluster_id, names in rows.values_list("cluster_id", "namespaces"):
            found[cluster_id] = found.get(cluster_id, frozenset()) | frozenset(names)
    return Scope(namespaces=found)


def networks(rows: QuerySet[Any], seen: Scope) -> QuerySet[Any]:
    """Networks that a namespace uses through a NAD."""
    if seen.everything:
        return rows
    nads = NAD.objects.filter(seen.within("network__cluster_id", "namespace"))
    return rows.filter(pk__in=nads.values("network_id"))


def nads(rows: QuerySet[Any], seen: Scope) -> QuerySet[Any]:
    return _within(rows, seen, "network__cluster_id")


def ippools(rows: QuerySet[Any], seen: Scope) -> QuerySet[Any]:
    """IPPools of the networks that are seen; of what is in them only the entries that are seen."""
    if seen.everything:
        return rows
    return rows.filter(network__in=networks(Network.objects.all(), seen).values("pk"))


def entries(rows: QuerySet[Any], seen: Scope) -> QuerySet[Any]:
    return _within(rows, seen, "ippool__cluster_id")


def claims(rows: QuerySet[Any], seen: Scope) -> QuerySet[Any]:
    return _within(rows, seen, "cluster_id")


def workloads(rows: QuerySet[Any], seen: Scope) -> QuerySet[Any]:
    return _within(rows, seen, "network__cluster_id")


def decisions(rows: QuerySet[Any], seen: Scope) -> QuerySet[Any]:
    return _within(rows, seen, "cluster_id")


def _within(rows: QuerySet[Any], seen: Scope, cluster: str) -> QuerySet[Any]:
    return rows if seen.everything else rows.filter(seen.within(cluster, "namespace"))
