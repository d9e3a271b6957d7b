"""What a cluster was observed to have of Cluster API (claims, addresses, pools, paused Clusters), and the pools of the
register that its pool objects name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from ipaddress import ip_address, ip_interface
from typing import Any, NamedTuple

from django.db.models import Exists, OuterRef, Q, QuerySet, Value
from django.db.models.functions import Concat

from pools import models
from pools.clusters.reconcile import watchers
from pools.clusters.reconcile.handler import ObjectKey, SyncContext
from pools.core import addresses, errors
from pools.core.cluster_api import contract
from pools.core.cluster_api.contract import (
    HOLDER_KIND,
    AddressClaim,
    ObjectName,
    PoolKey,
    PoolObject,
)
from pools.core.kubernetes.resources import Manifest, Resource
from pools.platform import events
from pools.register import pools as register_pools


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
    paused_pools: frozenset[PoolKey] = frozenset()  # invalid ones too

    def is_paused(self, claim: AddressClaim) -> bool:
        """Return True if the claim, its pool or its Cluster is paused, or may be without being known."""
        if claim.is_paused or claim.pool.kind in self.unknown:
            return True
        if claim.pool in self.paused_pools:
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
    cluster: models.Cluster,
    absent: Collection[str] = (),
    *,
    changed: Collection[ObjectKey] | None = None,
) -> Observation:
    """Return the objects of the cluster as last observed, without those of absent kinds.

    With `changed`, the names of the objects of watch events, the claims are those that are due (`_due`), and
    the IPAddresses and Clusters are theirs.
    """
    objects = models.ObservedObject.objects.filter(cluster=cluster).exclude(kind__in=absent)
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
    pool_manifests = {
        PoolKey(row.kind, row.namespace, row.name): row.manifest
        for row in _rows(objects.filter(kind__in=contract.POOL_KINDS))
    }
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
        pools={key: parse_pool(manifest) for key, manifest in pool_manifests.items()},
        paused_pools=frozenset(
            key
            for key, manifest in pool_manifests.items()
            if contract.has_paused_annotation(manifest)
        ),
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
    held = models.Block.objects.filter(
        holder_id=Concat(OuterRef("namespace"), Value("/"), OuterRef("name")),
        holder_kind=HOLDER_KIND,
        holder_uid=OuterRef("uid"),
        state=models.BlockState.HELD,
    )
    return Q(pending=True) | Q(~Exists(held))


def _is_named(keys: Collection[ObjectKey]) -> Q:
    """Return the condition of objects that have these names in one of these namespaces."""
    namespaces, names = {namespace for namespace, _ in keys}, {name for _, name in keys}
    return Q(namespace__in=namespaces, name__in=names)


def _rows(objects: QuerySet[models.ObservedObject]) -> list[_Row]:
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


def is_absent(connection: models.Connection, kind: str) -> bool:
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


# Pods get blocks of their nodes; the other two categories demand an org and an env (`owner-is-named`).
CATEGORIES = (models.Category.NODE, models.Category.VM)


class PoolNotUsable(errors.Conflict):
    """No address can be allocated from the pool that the object names."""

    code = "pool_not_usable"


@dataclass(frozen=True)
class PoolBinding:
    """A pool object, and the pool of the register and the family from which it gives addresses."""

    pool_object: PoolObject
    pool: models.Pool
    family: int
    cidrs: tuple[addresses.Network, ...]

    def address_spec(self, text: str) -> dict[str, Any]:
        """Return address, prefix and gateway of an IPAddress's spec.

        The prefix length is that of the pool's CIDR unless the pool object has one. A gateway belongs to
        the addresses of its own network; a link-local one to all.
        """
        address = ip_address(text)
        pool_object = self.pool_object
        cidr = next((cidr for cidr in self.cidrs if address in cidr), None)
        default = cidr.prefixlen if cidr else addresses.LONGEST_PREFIX[address.version]
        prefix = pool_object.prefix or default
        spec: dict[str, Any] = {"address": text, "prefix": prefix}
        gateway = pool_object.gateway
        network = ip_interface(f"{text}/{prefix}").network
        if gateway is not None and (gateway.is_link_local or gateway in network):
            spec["gateway"] = str(gateway)
        return spec


Bindings = Mapping[PoolKey, PoolBinding | errors.IpamError]


def bind(
    cluster: models.Cluster, pool_objects: Mapping[PoolKey, PoolObject | errors.InvalidInput]
) -> Bindings:
    """Return the pool of the register for each pool object, or the error why none can be used."""
    names = {row.pool_name for row in pool_objects.values() if isinstance(row, PoolObject)}
    pools_by_name = {
        row.name: row for row in models.Pool.objects.filter(cluster=cluster, name__in=names)
    }
    cidrs: dict[int, list[addresses.Network]] = {}
    for row in models.PoolCIDR.objects.filter(pool__in=pools_by_name.values()):
        cidrs.setdefault(row.pool_id, []).append(row.cidr)
    bindings: dict[PoolKey, PoolBinding | errors.IpamError] = {}
    for key, pool_object in pool_objects.items():
        if isinstance(pool_object, errors.InvalidInput):
            details = "; ".join(
                f"{problem.field}: {problem.message}" for problem in pool_object.problems
            )
            bindings[key] = PoolNotUsable(details)
            continue
        pool = pools_by_name.get(pool_object.pool_name)
        try:
            bindings[key] = _bind_one(cluster, pool_object, pool, cidrs)
        except errors.IpamError as error:
            bindings[key] = error
    return bindings


def _bind_one(
    cluster: models.Cluster,
    pool_object: PoolObject,
    pool: models.Pool | None,
    cidrs: Mapping[int, Iterable[addresses.Network]],
) -> PoolBinding:
    if pool is None:
        raise PoolNotUsable(f"The cluster {cluster} has no pool {pool_object.pool_name}.")
    if pool.category not in CATEGORIES:
        labels = " or ".join(category.value for category in CATEGORIES)
        raise PoolNotUsable(f"{pool} is of the category {pool.category}; it must be {labels}.")
    families = [family for family in (4, 6) if pool.mask_size(family) is not None]
    family = pool_object.family or (families[0] if len(families) == 1 else 0)
    if not family:
        raise PoolNotUsable(f"{pool} has both families: spec.family must be 4 or 6.")
    if family not in families:
        raise PoolNotUsable(f"{pool} has no IPv{family} addresses.")
    if pool.mask_size(family) != addresses.LONGEST_PREFIX[family]:
        raise PoolNotUsable(
            f"{pool} has blocks of the mask size {pool.mask_size(family)}; a claim gets a single"
            f" address, which needs the mask size {addresses.LONGEST_PREFIX[family]}."
        )
    if pool_object.gateway is not None and pool_object.gateway.version != family:
        raise PoolNotUsable(f"spec.gateway {pool_object.gateway} is no IPv{family} address.")
    networks = tuple(cidr for cidr in cidrs.get(pool.pk, ()) if cidr.version == family)
    _check_prefix(pool_object.prefix or 0, pool, family, networks)
    return PoolBinding(pool_object, pool, family, networks)


def _check_prefix(
    prefix: int, pool: models.Pool, family: int, networks: Iterable[addresses.Network]
) -> None:
    """Raise PoolNotUsable for a prefix length with which an address of the pool would be none of a machine."""
    if prefix > addresses.LONGEST_PREFIX[family]:
        raise PoolNotUsable(f"spec.prefix {prefix} is longer than an IPv{family} address.")
    for cidr in networks:
        if cidr.prefixlen < prefix < addresses.LONGEST_PREFIX[family] - 1:
            raise PoolNotUsable(
                f"spec.prefix {prefix} divides {cidr} of {pool} into several networks, of which the first and"
                " last addresses are no addresses of machines: use a pool with a CIDR for each network."
            )


def reserve_gateway(binding: PoolBinding, *, author: events.Author) -> None:
    """Reserve the gateway in the register if it lies in the pool, so that no claim gets it.

    The range stays when the pool object goes: a router does not go with it.
    """
    gateway = binding.pool_object.gateway
    if gateway is None or not any(gateway in cidr for cidr in binding.cidrs):
        return
    text = str(gateway)
    cidr = models.PoolCIDR.objects.get(pool=binding.pool, cidr__net_contains_or_equals=text)
    if cidr.reserved_ranges.filter(first__lte=text, last__gte=text).exists():
        return
    reason = f"Gateway of {binding.pool_object.key}"
    register_pools.reserve(
        cidr.pk, addresses.AddressRange(gateway, gateway), author=author, reason=reason
    )
