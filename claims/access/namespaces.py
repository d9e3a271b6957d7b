"""Who sees which VM networks: everybody with the right to see all namespaces, or by membership, made
here or by a cluster.

What somebody may not see does not exist for them: every list, count, search, choice and export goes
through here, and a foreign object is answered like an absent one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from django.db import models
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL

from claims.access import cluster_owners
from claims.models import (
    NAD,
    Decision,
    Entry,
    IndexEntry,
    IPAMClaim,
    IPPool,
    Membership,
    Network,
    Workload,
)
from pools.core import errors
from pools.models import Cluster
from pools.platform import database

EVERY_NAMESPACE = "claims.view_every_namespace"

Rows = QuerySet[Any]


@dataclass(frozen=True)
class Scope:
    """What somebody sees: everything, or some namespaces of some clusters (by id)."""

    everything: bool = False
    namespaces: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def has(self, cluster_id: int, namespace: str) -> bool:
        return self.everything or namespace in self.namespaces.get(cluster_id, ())

    def within(self, cluster: str, namespace: str) -> Q:
        """The rows of these namespaces, by the lookups of a row's cluster id and namespace."""
        query = Q(pk__in=[])
        for cluster_id, names in self.namespaces.items():
            query |= Q(**{cluster: cluster_id, f"{namespace}__in": sorted(names)})
        return query

    def require(self, cluster_id: int, namespace: str) -> None:
        """NotAllowed for another's namespace, and in the same words for one that nobody has."""
        if not self.has(cluster_id, namespace):
            raise errors.NotAllowed("You may do this in namespaces of your own only.")


EVERYTHING = Scope(everything=True)


def scope(user: Any) -> Scope:
    """What the user sees."""
    return EVERYTHING if user.has_perm(EVERY_NAMESPACE) else owner_scope(user)


def owner_scope(user: Any) -> Scope:
    """The namespaces of the user's memberships and those that clusters say, whatever else they see.

    One statement.
    """
    names_by_cluster: dict[int, set[str]] = {}
    if user.is_active:  # an anonymous one is not
        values = [user.pk, user.pk, *cluster_owners.query_parameters(user)]
        for cluster_id, names in database.rows(_OWN, values):
            names_by_cluster.setdefault(cluster_id, set()).update(names)
    return Scope(
        namespaces={cluster_id: frozenset(names) for cluster_id, names in names_by_cluster.items()}
    )


# The memberships made here that count for somebody: their own, and those of their groups.
_OF_USER = """
    SELECT m.id FROM claims_membership m
    WHERE m.user_id = %s::bigint
        OR m.group_id IN (SELECT ug.group_id FROM auth_user_groups ug WHERE ug.user_id = %s::bigint)
"""
_OWN = f"""
    SELECT m.cluster_id, m.namespaces::text[] FROM claims_membership m WHERE m.id IN ({_OF_USER})
    UNION ALL
    SELECT c.cluster_id, ARRAY[o.namespace]::text[]
    FROM claims_clusterowner o JOIN pools_connection c ON c.id = o.connection_id
    WHERE o.id IN ({cluster_owners.OF_USER})
"""  # noqa: S608  # no value is formatted in


def require_request(user: Any, cluster_id: int, namespace: str) -> None:
    """NotAllowed unless the user may write entries or claims for VMs of this namespace.

    Operators may for all; a VM owner in namespaces of their own, also one who sees more of them.
    """
    if user.has_perm("claims.add_entry"):
        return
    if not user.has_perm("claims.request_address"):
        raise errors.NotAllowed("This needs the permission claims.request_address.")
    owner_scope(user).require(cluster_id, namespace)


def of_user(user: Any) -> QuerySet[Membership]:
    """The memberships made here that count for somebody."""
    return Membership.objects.filter(pk__in=RawSQL(_OF_USER, [user.pk, user.pk]))  # noqa: S611  # no value is formatted in


def visible(rows: Rows, scope: Scope) -> Rows:
    """The rows of any table of VM networks (or of clusters) that are seen.

    Of another table nothing is seen by somebody who does not see everything.
    """
    if scope.everything:
        return rows
    limit = _LIMITS.get(rows.model)
    return limit(rows, scope) if limit else rows.none()


def clusters(rows: Rows, scope: Scope) -> Rows:
    """Clusters in which somebody sees a namespace: of these they see the name, nothing else."""
    return rows if scope.everything else rows.filter(pk__in=list(scope.namespaces))


def networks(rows: Rows, scope: Scope) -> Rows:
    """Networks that a namespace uses through a NAD, and UDNs of the namespace itself."""
    if scope.everything:
        return rows
    used = NAD.objects.filter(scope.within("network__cluster_id", "namespace"))
    return rows.filter(
        Q(pk__in=used.values("network_id")) | scope.within("cluster_id", "namespace")
    )


def nads(rows: Rows, scope: Scope) -> Rows:
    return _within(rows, scope, "network__cluster_id")


def ippools(rows: Rows, scope: Scope) -> Rows:
    """IPPools of the networks that are seen; of what is in them only the entries that are seen.

    Their conditions, problems and counts of duplicates tell of all namespaces: they are for those
    who see everything.
    """
    if scope.everything:
        return rows
    return rows.filter(network__in=networks(Network.objects.all(), scope).values("pk"))


def entries(rows: Rows, scope: Scope) -> Rows:
    return _within(rows, scope, "ippool__cluster_id")


def claims(rows: Rows, scope: Scope) -> Rows:
    return _within(rows, scope, "cluster_id")


def workloads(rows: Rows, scope: Scope) -> Rows:
    return _within(rows, scope, "network__cluster_id")


def index_entries(rows: Rows, scope: Scope) -> Rows:
    return _within(rows, scope, "network__cluster_id")


def decisions(rows: Rows, scope: Scope) -> Rows:
    return _within(rows, scope, "cluster_id")


def _within(rows: Rows, scope: Scope, cluster: str) -> Rows:
    return rows if scope.everything else rows.filter(scope.within(cluster, "namespace"))


_LIMITS: dict[type[models.Model], Callable[[Rows, Scope], Rows]] = {
    Cluster: clusters,
    Network: networks,
    NAD: nads,
    IPPool: ippools,
    Entry: entries,
    IPAMClaim: claims,
    Workload: workloads,
    IndexEntry: index_entries,
    Decision: decisions,
}
