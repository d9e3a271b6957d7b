"""Logical networks: as the cluster shows them, and those that are made here.

A network that was seen in the cluster says what its object says. One that is made here is for an
observed cluster a note of what somebody makes there, or (`applied`) written to a managed one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from claims.core.networks import rules, static_vms, udn
from claims.core.networks.udn import UDN
from claims.models import NAD, Network
from claims.models.networks import NetworkKind
from claims.networks import pools
from pools.clusters.reconcile import leases
from pools.core import addresses, errors
from pools.models import Cluster, Connection, PoolCIDR
from pools.models.connections import Mode
from pools.platform import database, events

# What a network's object says of it; the logical name finds the row, conditions are the status.
OBJECT_FIELDS = tuple(
    field.name for field in fields(UDN) if field.name not in {"name", "conditions"}
)
Place = tuple[str, str]  # namespace and name
MADE = {NetworkKind.CUDN, NetworkKind.UDN}  # by objects of their own
_FIRST = 5  # of those that use a network


def as_udn(network: Network) -> UDN:
    """A row as the object that makes it."""
    values = {name: getattr(network, name) for name in OBJECT_FIELDS}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return UDN(**(values | lists), name=network.name, conditions=tuple(network.conditions))


def static_vm_check(
    network: Network, nads: Iterable[NAD] | None = None
) -> static_vms.StaticVMCheck:
    """Whether it can hold static VMs, by all its NADs or by those that somebody sees."""
    nad_rows = network.nads.all() if nads is None else nads
    persistent = [nad.allow_persistent_ips for nad in nad_rows]
    return static_vms.check(network, persistent, gone=network.gone_at is not None)


def fitting_query(nads: QuerySet[NAD]) -> Q:
    """The networks of which `verdict` says yes, by these NADs; the same rules, for the database."""
    network_nads = nads.filter(network=OuterRef("pk"))
    return Q(
        Exists(network_nads.filter(allow_persistent_ips=True)) | ~Exists(network_nads),
        gone_at=None,
        topology=udn.LAYER2,
        role=udn.PRIMARY,
        lifecycle=udn.PERSISTENT,
        subnets__len__gt=0,
    ) & ~Q(Q(kind="") | Q(ipam_mode=udn.DISABLED))


def with_nads(rows: QuerySet[Network], nads: QuerySet[NAD] | None = None) -> QuerySet[Network]:
    """With what is shown of networks, in few queries; these of their NADs are in `shown_nads`."""
    shown = NAD.objects.all() if nads is None else nads
    networks = rows.select_related("cluster", "pool")
    return networks.prefetch_related(Prefetch("nads", queryset=shown, to_attr="shown_nads"))


def managed(cluster: Cluster) -> bool:
    """Whether networks of this cluster can be written to it."""
    return Connection.objects.filter(cluster=cluster, mode=Mode.MANAGED).exists()


def search(words: str) -> Q:
    """By a part of the name or the description, or by an address or CIDR of a subnet."""
    try:
        searched_cidr: object = (
            addresses.parse_cidr(words, allow_short=True)
            if "/" in words
            else addresses.parse_address(words)
        )
    except errors.InvalidInput:
        return Q(name__icontains=words) | Q(description__icontains=words)
    cidrs = PoolCIDR.objects.filter(cidr__net_overlaps=str(searched_cidr), orphaned_at=None)
    return Q(pool__in=cidrs.values("pool_id"))


# --- from the cluster -----------------------------------------------------------------------------


def registers(network: Network, *, is_managed: bool) -> bool:
    """Whether the register is right where the network and its object differ."""
    return network.applied and is_managed


def upsert_network(
    cluster: Cluster, spec: UDN, uid: str, *, author: events.Author, is_managed: bool
) -> Network:
    """Make the row say what a (Cluster)UserDefinedNetwork says, and its pool with it.

    Raises CIDROverlap (its subnets overlap each other).
    """
    network = _row(cluster, spec.name)
    if registers(network, is_managed=is_managed):
        changes = _differing(network, follows_cluster=False)
    else:
        changes = _changes(network, spec) | _differing(network, follows_cluster=True)
    changes |= _differing(network, uid=uid, gone_at=None, conditions=list(spec.conditions))
    return _save_changes(network, changes, author)


def mark_gone(network: Network, *, author: events.Author) -> Network:
    """Its object is gone. Entries and claims that name it stay, and so does what they hold."""
    return _save_changes(
        network, _differing(network, gone_at=database.now(), conditions=[]), author
    )


def _row(cluster: Cluster, name: str) -> Network:
    rows = Network.objects.select_related("pool", "cluster").filter(cluster=cluster, name=name)
    return rows.first() or Network(cluster=cluster, name=name)


def _changes(network: Network, spec: UDN) -> dict[str, Any]:
    values = {name: getattr(spec, name) for name in OBJECT_FIELDS}
    lists = {name: list(value) for name, value in values.items() if isinstance(value, tuple)}
    return _differing(network, **(values | lists))


def _differing(network: Network, **values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if getattr(network, name) != value}


def _save_changes(network: Network, changes: Mapping[str, Any], author: events.Author) -> Network:
    with events.recorded(author):
        if changes or network.pk is None:
            for name, value in changes.items():
                setattr(network, name, value)
            network.save()
        pools.sync_pool(network, author=author)
    return network


# --- NADs -----------------------------------------------------------------------------------------


def define_by_nads(
    network: Network, candidates: Sequence[UDN], *, author: events.Author
) -> Network:
    """Of a network that no (Cluster)UserDefinedNetwork makes: what its first NAD says.

    `candidates` are what all its NADs say; none: the network is gone.
    """
    if network.kind in MADE:
        return network
    if not candidates:
        if network.kind == NetworkKind.NAD and network.gone_at is None:
            return mark_gone(network, author=author)
        return network
    matching_candidates = [
        candidate for candidate in candidates if candidate.object_name == network.object_name
    ]
    matching_candidates = (
        [candidate for candidate in matching_candidates if candidate.namespace == network.namespace]
        if network.kind
        else []
    )
    spec = (
        matching_candidates
        or sorted(candidates, key=lambda candidate: (candidate.namespace, candidate.object_name))
    )[0]
    changes = _changes(network, spec) | _differing(network, gone_at=None, follows_cluster=True)
    return _save_changes(network, changes, author)


# --- made here ------------------------------------------------------------------------------------


def create_by_hand(
    cluster: Cluster,
    spec: UDN,
    *,
    author: events.Author,
    applied: bool = False,
    description: str = "",
    nads: Iterable[Place] = (),
) -> Network:
    """A network that somebody makes in an observed cluster, or (`applied`) that is written to it.

    `nads` are the attachment definitions through which namespaces use it, as long as no connection
    to the cluster tells of them. A name that so far only an IPPool or a claim mentioned becomes known by it. Raises AlreadyExists,
    NotManaged (`applied`, and nothing is written to the cluster).
    """
    with events.recorded(author):
        if applied and not managed(cluster):
            raise errors.NotManaged(
                f"The cluster {cluster} is observed: nothing is written to it. Apply the network's"
                " manifest yourself, or let the cluster be managed."
            )
        network = _row(cluster, spec.name)
        if network.pk is not None and network.kind and network.gone_at is None:
            raise errors.AlreadyExists(f"The cluster {cluster} has a network {spec.name}.")
        if applied:
            leases.nudge(cluster.pk, patient=True)
        changes = _changes(network, spec) | {
            "applied": applied,
            "description": description,
            "follows_cluster": False,
            "gone_at": None,
            "uid": "",
            "conditions": [],
        }
        saved_network = _save_changes(network, changes, author)
        name_nads(saved_network, nads, author=author)
    return saved_network


def name_nads(network: Network, nads: Iterable[Place], *, author: events.Author) -> None:
    """Say by hand which attachment definitions a network has; those that were seen stay.

    Raises ClusterDecides where the cluster tells.
    """
    desired_nads = set(nads)
    manual_nads = NAD.objects.filter(network=network, uid="")
    existing_nads = set(network.nads.values_list("namespace", "name"))
    if network.follows_cluster and desired_nads - existing_nads:
        raise errors.ClusterDecides(
            f"{network.name} follows the cluster {network.cluster}, which tells of its NADs."
        )
    with events.recorded(author):
        astray = [nad.pk for nad in manual_nads if (nad.namespace, nad.name) not in desired_nads]
        NAD.objects.filter(pk__in=astray).delete()
        NAD.objects.bulk_create(
            NAD(
                network=network,
                namespace=namespace,
                name=name,
                role=network.role,
                allow_persistent_ips=network.lifecycle == udn.PERSISTENT,
                subnets=network.subnets,
            )
            for namespace, name in sorted(desired_nads - existing_nads)
        )


def change(network: Network, values: Mapping[str, Any], *, author: events.Author) -> Network:
    """Change what can be changed: the description, and of a network made here the namespace
    selector and whether it is written to the cluster.

    `values` may repeat what never changes. Raises ClusterDecides (it follows its cluster),
    ImmutableInUse, NotManaged.
    """
    changes = {name: value for name, value in values.items() if getattr(network, name) != value}
    fixed = sorted(changes.keys() - {"description", "applied", "namespace_selector"})
    if network.follows_cluster and changes.keys() - {"description"}:
        names = ", ".join(sorted(changes.keys() - {"description"}))
        raise errors.ClusterDecides(
            f"{network.name} follows the cluster {network.cluster}: change {names} there."
        )
    if fixed:
        words = dict(rules.IMMUTABLE)
        reasons = " ".join(words.get(name, f"{name}.") for name in fixed)
        raise errors.ImmutableInUse(
            f"This never changes after a network was made; make a new one. {reasons}"
        )
    if changes.get("applied"):
        _check_applicable(network)
    with events.recorded(author):
        if changes and (network.applied or changes.get("applied")):
            leases.nudge(network.cluster_id, patient=True)
        for name, value in changes.items():
            setattr(network, name, value)
        if changes:
            network.save(update_fields=list(changes))
    return network


def _check_applicable(network: Network) -> None:
    if not managed(network.cluster):
        raise errors.NotManaged(f"The cluster {network.cluster} is observed.")
    written = udn.logical_name(network.kind, network.object_name, network.namespace)
    if network.kind != NetworkKind.CUDN or written != network.name:
        raise errors.NotManaged(
            "Only ClusterUserDefinedNetworks are written to a cluster, under the name that makes"
            " their logical name."
        )


def delete(network: Network, *, author: events.Author) -> None:
    """Forget a network that nothing uses, with its pool.

    Raises ClusterDecides (the cluster has it), NetworkInUse (an IPPool, claims or workloads name
    it), PoolInUse (addresses of it are held).
    """
    with events.recorded(author):
        if network.uid and network.kind and network.gone_at is None:
            kind = network.get_kind_display()
            place = f" -n {network.namespace}" if network.namespace else ""
            raise errors.ClusterDecides(
                f"The cluster has this network: delete it there first (kubectl delete"
                f" {kind.lower()} {network.object_name}{place})."
            )
        if users := list(_users(network)):
            raise errors.NetworkInUse(f"{network.name} is used by {'; '.join(users)}.")
        pools.forget(network, author=author)
        network.delete()


def _users(network: Network) -> Iterable[str]:
    ippool = getattr(network, "ippool", None)
    if ippool is not None:
        yield f"the IPPool {ippool.name} with {ippool.entries.count()} entries"
    for what, rows in (
        ("IPAMClaim", network.claims),
        ("workload", network.workloads),
        ("network attachment definition", network.nads.exclude(uid="")),
    ):
        count = rows.count()
        if count:
            names = ", ".join(f"{row.namespace}/{row.name}" for row in rows.all()[:_FIRST])
            more = f" and {count - _FIRST} more" if count > _FIRST else ""
            yield f"{count} {what}{'s' * (count > 1)} ({names}{more})"
