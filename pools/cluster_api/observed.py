"""What a cluster was observed to have of Cluster API: claims, addresses, pools, and paused Clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from pools.clusters.reconcile import watchers
from pools.clusters.reconcile.handler import ObjectKey, SyncContext
from pools.core import errors
from pools.core.cluster_api import contract
from pools.core.cluster_api.contract import (
    HOLDER_KIND,
    AddressClaim,
    ObjectName,
    PoolKey,
    PoolObject,
)
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Block, BlockState, Cluster, Connection, ObservedObject


@dataclass(frozen=True)
class ObservedClaim:
    """A claim, and its object."""

    claim: AddressClaim
    manifest: Manifest


@dataclass(frozen=True)
class Observation:
    """The objects of a cluster; `unknown` has the kinds that the last list or watch did not read whole.

    Of an invalid pool object, `pools` has the error. An object that only the last list missed is no
    longer in `claims` and `addresses`, but still in `claim_uids` and `address_texts`, which have invalid
    claims too: what they name is not released yet.
    """

    claims: tuple[ObservedClaim, ...]
    claim_uids: frozenset[str]
    addresses: Mapping[ObjectName, Manifest]
    address_texts: frozenset[tuple[ObjectName, str]]
    pools: Mapping[PoolKey, PoolObject | errors.InvalidInput]
    paused_clusters: Mapping[ObjectName, bool]
    unknown: frozenset[str] = frozenset()

    def is_paused(self, claim: AddressClaim) -> bool:
        """Return True if the claim, its pool or its Cluster is paused, or may be without being known."""
        pool = self.pools.get(claim.pool)
        if claim.is_paused or claim.pool.kind in self.unknown:
            return True
        if isinstance(pool, PoolObject) and pool.is_paused:
            return True
        if not claim.cluster:
            return False
        if contract.CLUSTER_KIND in self.unknown:
            return True
        name = ObjectName(claim.name.namespace, claim.cluster)
        # A Cluster may be gone before the claims of its machines.
        return self.paused_clusters.get(name, not claim.is_deleting)


KINDS = (
    contract.CLUSTER_KIND,
    *contract.POOL_KINDS,
    contract.ADDRESS_KIND,
    contract.CLAIM_KIND,
)


def read(context: SyncContext) -> Observation:
    """Return the objects of the cluster as this sync run knows them; after a watch event, those that are due."""
    absent = frozenset(kind for kind in KINDS if is_absent(context.connection, kind))
    changed = context.changed_keys if context.from_watch else None
    observation = read_rows(context.cluster, absent, changed=changed)
    unknown = frozenset(
        kind for kind in KINDS if kind not in absent and not watchers.is_known(context, kind)
    )
    return replace(observation, unknown=unknown)


def read_rows(
    cluster: Cluster, absent: Collection[str] = (), *, changed: Collection[ObjectKey] | None = None
) -> Observation:
    """Return the objects of the cluster as last observed, without those of absent kinds.

    With `changed`, the names of the objects of watch events, the claims are those that are due (`_due`), and
    the IPAddresses and Clusters are theirs.
    """
    objects = ObservedObject.objects.filter(cluster=cluster).exclude(kind__in=absent)
    claim_query = objects.filter(kind=contract.CLAIM_KIND)
    address_query = objects.filter(kind=contract.ADDRESS_KIND)
    cluster_query = objects.filter(kind=contract.CLUSTER_KIND)
    if changed is not None:
        claim_query = claim_query.filter(_due(changed))
    claim_rows = sorted(_rows(claim_query), key=_creation)  # who waits longest is served first
    claims = tuple(
        ObservedClaim(contract.parse_claim(row.manifest), row.manifest)
        for row in claim_rows
        if not row.problem_code and row.missed_at is None
    )
    if changed is not None:
        names = {(row.namespace, row.name) for row in claim_rows} | set(changed)
        address_query = address_query.filter(_is_named(names))
        cluster_query = cluster_query.filter(name__in={each.claim.cluster for each in claims})
    address_rows = _rows(address_query)
    return Observation(
        claims=claims,
        claim_uids=frozenset(row.uid for row in claim_rows),
        addresses={
            contract.object_name(row.manifest): row.manifest
            for row in address_rows
            if row.missed_at is None
        },
        address_texts=frozenset(
            (contract.object_name(row.manifest), contract.address_of(row.manifest))
            for row in address_rows
        ),
        pools={
            PoolKey(row.kind, row.namespace, row.name): parse_pool(row.manifest)
            for row in _rows(objects.filter(kind__in=contract.POOL_KINDS))
        },
        paused_clusters={
            ObjectName(row.namespace, row.name): contract.is_cluster_paused(row.manifest)
            for row in _rows(cluster_query)
        },
    )


def _due(changed: Collection[ObjectKey]) -> Q:
    """Return the condition of claims that an event, or without one a change of the register, may concern.

    Their rows say which are not answered (`pending`); the others are those of the changed objects' names, as
    an IPAddress has the name of its claim, and after a change of the register those that hold no address any
    more. Comparing thousands would delay the answer to the one that has just come; the next full sync does.
    """
    if changed:
        return Q(pending=True) | _is_named(changed)
    held = Block.objects.filter(
        holder_id=Concat(OuterRef("namespace"), Value("/"), OuterRef("name")),
        holder_kind=HOLDER_KIND,
        holder_uid=OuterRef("uid"),
        state=BlockState.HELD,
    )
    return Q(pending=True) | Q(~Exists(held))


def _is_named(keys: Collection[ObjectKey]) -> Q:
    """Return the condition of objects that have these names in one of these namespaces."""
    namespaces, names = {namespace for namespace, _ in keys}, {name for _, name in keys}
    return Q(namespace__in=namespaces, name__in=names)


def _rows(objects: QuerySet[ObservedObject]) -> list[_Row]:
    # Ten thousand instances of a model would take most of the time of a full sync.
    return [_Row(*values) for values in objects.order_by("pk").values_list(*_Row._fields)]


class _Row(NamedTuple):
    kind: str
    namespace: str
    name: str
    uid: str
    manifest: Manifest
    problem_code: str
    missed_at: datetime | None


def _creation(row: _Row) -> str:
    return str(contract.metadata(row.manifest).get("creationTimestamp") or "")


def parse_pool(manifest: Manifest) -> PoolObject | errors.InvalidInput:
    try:
        return contract.parse_pool(manifest)
    except errors.InvalidInput as error:
        return error


def is_absent(connection: Connection, kind: str) -> bool:
    """Return True if the last discovery of the cluster did not have the kind."""
    served: Any = (connection.served or {}).get(kind)
    return bool(served) and not served["api_version"]


def served_resource(context: SyncContext, resources: Iterable[Resource]) -> Resource | None:
    """Return the version of a kind that this sync reads; None if its objects are not known."""
    for resource in resources:
        if context.from_watch:
            position = watchers.read(context.connection.positions, resource.kind)
            is_read = position is not None and position.api_version == resource.api_version
        else:
            is_read = context.served.get(resource.kind) == resource
        if is_read:
            return resource
    return None
