"""What a cluster was observed to have of Cluster API: claims, addresses, pools, and paused Clusters."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

from pools.clusters.client.api_client import Manifest
from pools.clusters.reconcile import watch_positions
from pools.clusters.reconcile.handler import SyncContext
from pools.core import errors
from pools.core.cluster_api import contract
from pools.core.cluster_api.contract import AddressClaim, ObjectName, PoolKey, PoolObject
from pools.core.kubernetes.resources import Resource
from pools.models import Cluster, Connection, ObservedObject


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
    """Return the objects of the cluster as this sync run knows them."""
    absent = frozenset(kind for kind in KINDS if is_absent(context.connection, kind))
    observation = read_rows(context.cluster, absent)
    unknown = frozenset(
        kind for kind in KINDS if kind not in absent and not watch_positions.is_known(context, kind)
    )
    return replace(observation, unknown=unknown)


def read_rows(cluster: Cluster, absent: Collection[str] = ()) -> Observation:
    """Return the objects of the cluster as last observed, without those of absent kinds."""
    rows = ObservedObject.objects.filter(cluster=cluster, kind__in=KINDS).order_by("pk")
    by_kind: dict[str, list[_Row]] = {kind: [] for kind in KINDS}
    # Each watch event reads all of them: ten thousand instances of a model take most of its time.
    for row in map(_Row._make, rows.values_list(*_Row._fields)):
        if row.kind not in absent:
            by_kind[row.kind].append(row)
    claims = by_kind[contract.CLAIM_KIND]
    return Observation(
        claims=tuple(
            ObservedClaim(contract.parse_claim(row.manifest), row.manifest)
            for row in sorted(claims, key=_creation)  # who waits longest is served first
            if not row.problem_code and row.missed_at is None
        ),
        claim_uids=frozenset(row.uid for row in claims),
        addresses={
            contract.object_name(row.manifest): row.manifest
            for row in by_kind[contract.ADDRESS_KIND]
            if row.missed_at is None
        },
        address_texts=frozenset(
            (contract.object_name(row.manifest), contract.address_of(row.manifest))
            for row in by_kind[contract.ADDRESS_KIND]
        ),
        pools={
            PoolKey(row.kind, row.namespace, row.name): parse_pool(row.manifest)
            for kind in contract.POOL_KINDS
            for row in by_kind[kind]
        },
        paused_clusters={
            ObjectName(row.namespace, row.name): contract.is_cluster_paused(row.manifest)
            for row in by_kind[contract.CLUSTER_KIND]
        },
    )


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
            position = watch_positions.read(context.connection.positions, resource.kind)
            is_read = position is not None and position.api_version == resource.api_version
        else:
            is_read = context.served.get(resource.kind) == resource
        if is_read:
            return resource
    return None
