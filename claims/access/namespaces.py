"""Visibility of VM networks: by the permission to see all namespaces, or by VM ownership; the quota of a namespace.

VM ownership comes from memberships and from clusters. An object that a user may not see does not exist
for that user: every list, count, search, choice and export is filtered here, and a request for a
foreign object is answered like one for an absent object.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from django.conf import settings
from django.db import models
from django.db.models import Q, QuerySet
from django.db.models.expressions import RawSQL

from claims.access import cluster_owners
from claims.core.workloads import vm_addresses
from claims.models import (
    NAD,
    Decision,
    Entry,
    IndexEntry,
    IPAMClaim,
    IPPool,
    Membership,
    Network,
    VMImport,
    Workload,
)
from pools.core import errors
from pools.models import Cluster
from pools.platform import advisory_locks, database
from pools.sql import statements

EVERY_NAMESPACE = "claims.view_every_namespace"

Rows = QuerySet[Any]


@dataclass(frozen=True)
class Scope:
    """What a user sees: everything, or namespaces of clusters (by cluster id)."""

    everything: bool = False
    namespaces: Mapping[int, frozenset[str]] = field(default_factory=dict)

    def has(self, cluster_id: int, namespace: str) -> bool:
        return self.everything or namespace in self.namespaces.get(cluster_id, ())

    def within(self, cluster: str, namespace: str) -> Q:
        """Return the filter for rows in these namespaces; the arguments are lookups of cluster id and namespace."""
        query = Q(pk__in=[])
        for cluster_id, names in self.namespaces.items():
            query |= Q(**{cluster: cluster_id, f"{namespace}__in": sorted(names)})
        return query

    def require(self, cluster_id: int, namespace: str) -> None:
        """Raise NotAllowed for a foreign namespace, with the same message as for an absent one."""
        if not self.has(cluster_id, namespace):
            raise errors.NotAllowed("You can do this only in namespaces that you own.")


EVERYTHING = Scope(everything=True)


def scope(user: Any) -> Scope:
    """Return the scope of a user."""
    return EVERYTHING if user.has_perm(EVERY_NAMESPACE) else owner_scope(user)


def owner_scope(user: Any) -> Scope:
    """Return the namespaces that a user owns, whatever else the user sees. Runs one query."""
    names_by_cluster: dict[int, set[str]] = {}
    if user.is_active:  # anonymous users are inactive
        values = [user.pk, user.pk, *cluster_owners.query_parameters(user)]
        for cluster_id, names in database.rows(_OWN, values):
            names_by_cluster.setdefault(cluster_id, set()).update(names)
    return Scope(
        namespaces={cluster_id: frozenset(names) for cluster_id, names in names_by_cluster.items()}
    )


# The memberships of a user and of the user's groups.
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
    """Raise NotAllowed unless the user may write entries or claims for VMs of this namespace.

    Operators may do so for all namespaces, VM owners for the namespaces that they own.
    """
    if user.has_perm("claims.add_entry"):
        return
    if not user.has_perm("claims.request_address"):
        raise errors.NotAllowed("This needs the permission claims.request_address.")
    owner_scope(user).require(cluster_id, namespace)


def request_scope(user: Any) -> Scope:
    """Return the scope in which an address that the user requests must be free; operators may cause conflicts."""
    return EVERYTHING if user.has_perm("claims.add_ipamclaim") else owner_scope(user)


def import_scope(vm_import: VMImport) -> Scope:
    """Return the namespaces that an import may read and write: all, or those of its user."""
    if not vm_import.limited:
        return EVERYTHING
    return owner_scope(vm_import.user) if vm_import.user else Scope()


def of_user(user: Any) -> QuerySet[Membership]:
    """Return the memberships of the user and of the user's groups."""
    return Membership.objects.filter(pk__in=RawSQL(_OF_USER, [user.pk, user.pk]))  # noqa: S611  # no value is formatted in


def visible(rows: Rows, scope: Scope) -> Rows:
    """Return the rows that the scope shows, of clusters or of any table of VM networks.

    Rows of other tables are visible only to users who see everything.
    """
    if scope.everything:
        return rows
    if rows.model in _CLUSTERS:
        return rows.filter(scope.within(_CLUSTERS[rows.model], "namespace"))
    limit = _LIMITS.get(rows.model)
    return limit(rows, scope) if limit else rows.none()


def clusters(rows: Rows, scope: Scope) -> Rows:
    """Return the clusters with a visible namespace; such users see only the names of clusters."""
    return rows if scope.everything else rows.filter(pk__in=list(scope.namespaces))


def networks(rows: Rows, scope: Scope) -> Rows:
    """Return the networks that a visible namespace uses through a NAD, and its own UDNs."""
    if scope.everything:
        return rows
    used = NAD.objects.filter(scope.within("network__cluster_id", "namespace"))
    return rows.filter(
        Q(pk__in=used.values("network_id")) | scope.within("cluster_id", "namespace")
    )


def ippools(rows: Rows, scope: Scope) -> Rows:
    """Return the IPPools of the visible networks; their entries are filtered apart.

    Conditions, problems and duplicate counts of an IPPool cover all namespaces: show them only to
    users who see everything.
    """
    if scope.everything:
        return rows
    return rows.filter(network__in=networks(Network.objects.all(), scope).values("pk"))


# The lookup of the cluster of the tables that have a namespace.
_CLUSTERS: dict[type[models.Model], str] = {
    NAD: "network__cluster_id",
    Entry: "ippool__cluster_id",
    IPAMClaim: "cluster_id",
    Workload: "network__cluster_id",
    IndexEntry: "network__cluster_id",
}


def decisions(rows: Rows, scope: Scope) -> Rows:
    """Return the decisions about objects of visible namespaces, but for those whose reasons may name others."""
    if scope.everything:
        return rows
    own = rows.filter(scope.within("cluster_id", "namespace"))
    return own.exclude(code__in=vm_addresses.NAMING_OTHERS)


_LIMITS: dict[type[models.Model], Callable[[Rows, Scope], Rows]] = {
    Decision: decisions,
    Cluster: clusters,
    Network: networks,
    IPPool: ippools,
}


# All addresses of the namespace's entries and claims count, on all networks of the cluster, whoever registered them.
# What comes from clusters is never refused.
@contextmanager
def enforce_quota(cluster_id: int, namespaces: Iterable[str]) -> Iterator[None]:
    """Raise QuotaExceeded if the changes inside give a namespace more addresses than the quota.

    The caller opens the transaction and holds no other lock yet. The namespaces are locked until its end, so that
    concurrent requests do not exceed the quota together (rule `quota-is-never-exceeded`).
    """
    quota: int = settings.IPAM_VM_OWNER_QUOTA
    names = sorted(set(namespaces)) if quota else []
    for name in names:
        values = {"lock": advisory_locks.QUOTA, "namespace": f"{cluster_id}/{name}"}
        database.fetch(_QUOTA_LOCK, values)
    before = _count_addresses(cluster_id, names)
    yield
    for name, count in _count_addresses(cluster_id, names).items():
        if count > max(quota, before.get(name, 0)):
            raise errors.QuotaExceeded(
                f"The namespace {name} would have {count} addresses; its VM owners may take {quota}."
                " Release some, or ask an administrator for more."
            )


def _count_addresses(cluster_id: int, names: list[str]) -> dict[str, int]:
    if not names:
        return {}
    return dict(database.rows(_QUOTA_COUNT, {"cluster": cluster_id, "namespaces": names}))


_QUOTA_LOCK = "SELECT pg_advisory_xact_lock(%(lock)s, hashtext(%(namespace)s))"
_QUOTA_COUNT = statements.read("claims/addresses_of_namespaces")
