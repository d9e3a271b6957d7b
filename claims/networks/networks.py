"""Logical networks: those observed in clusters, and those created here.

IPPools and claims refer to networks by their logical name. The manifest of a network is the cluster's object, or the
one to apply.

The row of an observed network mirrors its object. A network that is created here documents one that is
created in the cluster by other means, or (`applied`) is written to a managed cluster.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from django.db.models import Exists, OuterRef, Prefetch, Q, QuerySet

from claims.address_index import block_sync
from claims.core import resources
from claims.core.networks import rules, static_vms, udn
from claims.core.networks.udn import UDN
from claims.models import NAD, Network
from claims.models.networks import NetworkKind
from claims.models.workloads import WorkloadKind
from claims.networks import pools
from pools.clusters.reconcile import leases
from pools.core import errors
from pools.models import ATTRIBUTES, Cluster, Connection, Mode, ObservedObject
from pools.platform import attributes, database, documents, events

# Fields of a network's object; the logical name is the key of the row, conditions are the status.
OBJECT_FIELDS = tuple(
    field.name for field in fields(UDN) if field.name not in {"name", "conditions"}
)
ObjectName = tuple[str, str]  # namespace and name
UDN_KINDS = {NetworkKind.CUDN, NetworkKind.UDN}
_MAX_NAMED = 5  # users of a network in a message


def as_udn(network: Network) -> UDN:
    """Return a row as the object that defines the network."""
    values = {name: getattr(network, name) for name in OBJECT_FIELDS}
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    return UDN(**(values | lists), name=network.name, conditions=tuple(network.conditions))


def static_vm_check(
    network: Network, nads: Iterable[NAD] | None = None
) -> static_vms.StaticVMCheck:
    """Check that a network can hold VMs with static addresses.

    `nads` are the NADs that the user may see; by default all NADs of the network.
    """
    nad_rows = network.nads.all() if nads is None else nads
    persistent = [nad.allow_persistent_ips for nad in nad_rows]
    return static_vms.check(network, persistent, gone=network.gone_at is not None)


def fitting_query(nads: QuerySet[NAD]) -> Q:
    """Return the filter for networks that pass `static_vm_check` with these NADs."""
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
    """Prefetch cluster, pool and NADs of networks; those of `nads` are in `shown_nads`."""
    shown_nads = NAD.objects.all() if nads is None else nads
    networks = rows.select_related("cluster", "pool")
    return networks.prefetch_related(Prefetch("nads", queryset=shown_nads, to_attr="shown_nads"))


def is_managed(cluster: Cluster) -> bool:
    """Return True if Cadastre can write networks to the cluster."""
    return Connection.objects.filter(cluster=cluster, mode=Mode.MANAGED).exists()


# --- from the cluster -----------------------------------------------------------------------------


def register_decides(network: Network, *, is_managed: bool) -> bool:
    """Return True if the register decides, not the object, where the network and its object differ."""
    return network.applied and is_managed


def upsert_network(
    cluster: Cluster, spec: UDN, uid: str, *, author: events.Author, is_managed: bool
) -> Network:
    """Store a (Cluster)UserDefinedNetwork as a network, and sync the network's pool.

    Raises CIDROverlap (its subnets overlap each other).
    """
    network = _row(cluster, spec.name)
    if register_decides(network, is_managed=is_managed):
        changes = _differing(network, follows_cluster=False)
    else:
        changes = _changes(network, spec) | _differing(network, follows_cluster=True)
    changes |= _differing(network, uid=uid, gone_at=None, conditions=list(spec.conditions))
    return _save_changes(network, changes, author)


def mark_gone(network: Network, *, author: events.Author) -> Network:
    """Mark a network whose object was deleted; its entries, claims and their addresses stay."""
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
    with events.recorded_by(author):
        if changes or network.pk is None:
            block_sync.lock_pools(filter(None, [network.pk]))
            for name, value in changes.items():
                setattr(network, name, value)
            network.save()
        pools.sync_pool(network, author=author)
    return network


# --- NADs -----------------------------------------------------------------------------------------


def define_by_nads(
    network: Network, candidates: Sequence[UDN], *, author: events.Author
) -> Network:
    """Define a network without a (Cluster)UserDefinedNetwork by its first NAD.

    `candidates` are the networks that its NADs define; without any, the network is marked as gone.
    """
    if network.kind in UDN_KINDS:
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


def create_network(
    cluster: Cluster,
    spec: UDN,
    *,
    author: events.Author,
    applied: bool = False,
    description: str = "",
    nads: Iterable[ObjectName] = (),
    **values: Any,
) -> Network:
    """Create a network that documents one in the cluster, or (`applied`) is written to the cluster.

    `nads` are the attachment definitions through which namespaces use the network, for a cluster whose
    NADs are not observed. A network that only an IPPool or a claim named so far gets these values.
    Raises AlreadyExists, NotManaged (`applied`, and the cluster is not managed).
    """
    with events.recorded_by(author):
        if applied and not is_managed(cluster):
            raise errors.NotManaged(
                f"The cluster {cluster} is read-only. Apply the network's manifest yourself, or manage"
                " the cluster."
            )
        network = _row(cluster, spec.name)
        if network.pk is not None and network.kind and network.gone_at is None:
            raise errors.AlreadyExists(f"The cluster {cluster} already has a network {spec.name}.")
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
        attributes.assign(network, values)
        saved_network = _save_changes(network, changes, author)
        set_nads(saved_network, nads, author=author)
    return saved_network


def set_nads(network: Network, nads: Iterable[ObjectName], *, author: events.Author) -> None:
    """Replace the NADs of a network that were entered here; observed NADs stay.

    Raises ClusterDecides if the NADs of the network are observed in the cluster.
    """
    desired_nads = set(nads)
    manual_nads = NAD.objects.filter(network=network, uid="")
    existing_nads = set(network.nads.values_list("namespace", "name"))
    if network.follows_cluster and desired_nads - existing_nads:
        raise errors.ClusterDecides(
            f"{network.name} follows the cluster {network.cluster}, where its NADs are observed."
        )
    with events.recorded_by(author):
        obsolete_ids = [
            nad.pk for nad in manual_nads if (nad.namespace, nad.name) not in desired_nads
        ]
        NAD.objects.filter(pk__in=obsolete_ids).delete()
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


def change(
    network: Network,
    values: Mapping[str, Any],
    *,
    author: events.Author,
    version: database.Version = None,
) -> Network:
    """Change the description and the attributes, or of a network created here the namespace selector and `applied`.

    `values` may contain immutable fields with their current values. Raises ClusterDecides (the network
    follows its cluster), ImmutableInUse, NotManaged, VersionMismatch.
    """
    of_attributes = {name: values[name] for name in ATTRIBUTES if name in values}
    changes = {
        name: value
        for name, value in values.items()
        if name not in of_attributes and getattr(network, name) != value
    }
    immutable_names = sorted(changes.keys() - {"description", "applied", "namespace_selector"})
    if network.follows_cluster and changes.keys() - {"description"}:
        names = ", ".join(sorted(changes.keys() - {"description"}))
        raise errors.ClusterDecides(
            f"{network.name} follows the cluster {network.cluster}: change {names} there."
        )
    if immutable_names:
        words = dict(rules.IMMUTABLE)
        reasons = " ".join(words.get(name, f"{name}.") for name in immutable_names)
        raise errors.ImmutableInUse(
            f"These fields of a network are immutable: create a new network. {reasons}"
        )
    if changes.get("applied"):
        _check_applicable(network)
    with events.recorded_by(author):
        if changes and (network.applied or changes.get("applied")):
            leases.nudge(network.cluster_id, patient=True)
        attributes.lock_definitions(of_attributes)
        locked = Network.objects.select_for_update(no_key=True).get(pk=network.pk)
        database.require_version(locked, version)
        network.custom_fields = locked.custom_fields
        attributes.assign(network, changes | of_attributes)
        if changes or of_attributes:
            network.save(update_fields=[*changes, *of_attributes])
    return network


def _check_applicable(network: Network) -> None:
    if not is_managed(network.cluster):
        raise errors.NotManaged(f"The cluster {network.cluster} is read-only.")
    logical_name = udn.logical_name(network.kind, network.object_name, network.namespace)
    if network.kind != NetworkKind.CUDN or logical_name != network.name:
        raise errors.NotManaged(
            "Only ClusterUserDefinedNetworks whose name matches their logical name can be written to a"
            " cluster."
        )


def delete(network: Network, *, author: events.Author) -> None:
    """Delete an unused network and its pool.

    Raises ClusterDecides (it exists in the cluster), NetworkInUse (an IPPool, claims or workloads refer
    to it), PoolInUse (addresses of it are held).
    """
    with events.recorded_by(author):
        if network.uid and network.kind and network.gone_at is None:
            kind = network.get_kind_display()
            option = f" -n {network.namespace}" if network.namespace else ""
            raise errors.ClusterDecides(
                f"The network exists in its cluster: delete it there first (kubectl delete"
                f" {kind.lower()} {network.object_name}{option})."
            )
        if users := list(_users(network)):
            raise errors.NetworkInUse(f"The network {network.name} is used by {'; '.join(users)}.")
        pools.delete_pool(network, author=author)
        network.delete()


def _users(network: Network) -> Iterable[str]:
    ippool = getattr(network, "ippool", None)
    if ippool is not None:
        yield f"the IPPool {ippool.name} with {ippool.entries.count()} entries"
    for what, rows in (
        ("IPAMClaim", network.claims),
        ("workload", network.workloads.exclude(kind=WorkloadKind.TEMPLATE)),
        ("network attachment definition", network.nads.exclude(uid="")),
    ):
        count = rows.count()
        if count:
            names = ", ".join(f"{row.namespace}/{row.name}" for row in rows.all()[:_MAX_NAMED])
            more = f" and {count - _MAX_NAMED} more" if count > _MAX_NAMED else ""
            yield f"{count} {what}{'s' * (count > 1)} ({names}{more})"


def get_or_create(cluster_id: int, name: str) -> Network:
    """Return the cluster's logical network; if it has no row, create one of kind UNKNOWN.

    The kind is set when the network's object is observed. Call it in a transaction.
    """
    row, _ = Network.objects.get_or_create(cluster_id=cluster_id, name=name)
    return row


_KINDS = {udn.CUDN: resources.CLUSTER_UDN, udn.UDN_KIND: resources.UDN}
_LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
_METADATA = ("name", "namespace", "labels", "annotations")  # the fields that users set


def applicable_manifest(network: Network) -> dict[str, Any]:
    """Return the (Cluster)UserDefinedNetwork of a network, ready to be applied.

    A network that follows its cluster has the object of the cluster, with all its fields. Raises
    NotFound for a network without such an object.
    """
    resource = _KINDS.get(network.kind)
    if resource is None:
        raise errors.NotFound(f"The network {network.name} has no (Cluster)UserDefinedNetwork.")
    if network.follows_cluster:
        observed_object = ObservedObject.objects.filter(
            cluster=network.cluster_id, kind=resource.kind, uid=network.uid
        ).first()
        if observed_object is not None:
            return _plain(observed_object.manifest)
    if network.topology == udn.LOCALNET:
        raise errors.NotFound(f"The object of the network {network.name} was deleted.")
    return udn.render(as_udn(network))


def _plain(manifest: dict[str, Any]) -> dict[str, Any]:
    metadata = {key: manifest["metadata"].get(key) for key in _METADATA}
    if annotations := metadata["annotations"]:
        metadata["annotations"] = {
            key: value for key, value in annotations.items() if key != _LAST_APPLIED
        }
    return {
        "apiVersion": manifest["apiVersion"],
        "kind": manifest["kind"],
        "metadata": {key: value for key, value in metadata.items() if value},
        "spec": manifest["spec"],
    }


def render_yaml(network: UDN) -> str:
    """Return the manifest of a network as YAML, before the network is created."""
    return documents.dump_yaml(udn.render(network))
