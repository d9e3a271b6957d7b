"""Findings about the networks of a cluster."""

import functools
from collections.abc import Iterator, Sequence
from ipaddress import ip_network

from claims.address_index import block_sync
from claims.core import resources
from claims.core.networks import kept_addresses, nads, udn
from claims.models import NAD, Network
from claims.networks import pools as network_pools
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.core import errors
from pools.models import PoolCIDR, Severity
from pools.register import pool_cidrs

# The kind of the objects of networks of a kind.
_KINDS = {
    udn.CUDN: resources.CLUSTER_UDN.kind,
    udn.UDN_KIND: resources.UDN.kind,
    udn.NAD_KIND: resources.NAD.kind,
}
_MAX_NAMED = 20  # holders in a message
# Conditions in the status of OVN-Kubernetes, by type: the finding's code and its message if False.
_CONDITIONS = {
    "NetworkCreated": (
        "network_not_created",
        "OVN-Kubernetes could not create the network {name} in all its namespaces",
    ),
    "NetworkAllocationSucceeded": (
        "network_allocation_failed",
        "OVN-Kubernetes could not set up the network {name} on all nodes",
    ),
    "TransportAccepted": (
        "network_transport_refused",
        "OVN-Kubernetes refused the transport of the network {name}",
    ),
}


def network_findings(context: SyncContext, kind: str) -> Iterator[ReconcileFinding]:
    """Report what is wrong with the networks of a kind of objects.

    OVN-Kubernetes reports a problem; gateways, management ports, reserved and excluded subnets contradict each other;
    or a network was created here and does not exist in the cluster.
    """
    rows = Network.objects.filter(cluster=context.cluster, kind=kind, gone_at=None).order_by("name")
    handler_kind = _KINDS[kind]
    of_networks = functools.partial(ingest.find_each, context, handler_kind, name=_name)
    if kind != udn.NAD_KIND:
        yield from of_networks(rows.exclude(conditions=[]), _conditions)
    yield from of_networks(rows, _contradictions)
    if kind != udn.NAD_KIND and handler_kind in context.complete:
        yield from of_networks(rows.filter(uid="", applied=False), _not_in_cluster)


def _name(network: Network) -> str:
    return network.object_name or network.name


def _conditions(network: Network) -> Iterator[ReconcileFinding]:
    for condition in network.conditions:
        meaning = _CONDITIONS.get(str(condition.get("type")))
        if meaning and condition.get("status") == "False":
            code, words = meaning
            reason, message = str(condition.get("reason", "")), str(condition.get("message", ""))
            text = f"{words.format(name=network.name)} ({reason}): {message}"[:990]
            details = {"network": network.name, "reason": reason, "message": message[:2000]}
            yield ReconcileFinding(code, network.name, text, Severity.ERROR, details)


def _contradictions(network: Network) -> Iterator[ReconcileFinding]:
    contradictions = kept_addresses.contradictions(network)
    if contradictions:
        message = " ".join(
            [
                f"The network {network.name} contradicts itself.",
                *(contradiction.message for contradiction in contradictions),
            ]
        )
        severity = (
            Severity.ERROR
            if any(contradiction.fatal for contradiction in contradictions)
            else Severity.WARNING
        )
        details = {"fields": sorted({contradiction.field for contradiction in contradictions})}
        yield ReconcileFinding("kept_twice", network.name, message[:990], severity, details)


def _not_in_cluster(network: Network) -> Iterator[ReconcileFinding]:
    message = (
        f"The network {network.name} is in the register and not in the cluster. Apply its"
        " manifest, or delete the network here."
    )
    yield ReconcileFinding("network_not_in_cluster", network.name, message)


def network_differs(network: Network, names: Sequence[str]) -> ReconcileFinding:
    listed = ", ".join(names)
    message = (
        f"The network {network.name} differs in the cluster in immutable fields: {listed}. Delete the"
        " object in the cluster to have it created again, or let the register follow it (applied off)."
    )
    return ReconcileFinding(
        "network_differs", network.name, message, Severity.ERROR, {"fields": list(names)}
    )


def orphaned_subnets(context: SyncContext) -> Iterator[ReconcileFinding]:
    cidrs = network_pools.orphaned_cidrs(context.cluster)
    yield from ingest.find_each(
        context,
        resources.CLUSTER_UDN.kind,
        [cidr for cidr in cidrs if hasattr(cidr.pool, "network")],
        _orphaned_subnet,
        name=lambda cidr: cidr.pool.name,
    )


def _orphaned_subnet(cidr: PoolCIDR) -> Iterator[ReconcileFinding]:
    rows = pool_cidrs.blocks_in_use(cidr)
    count = rows.count()
    holders = [
        {"kind": row.holder_kind, "id": row.holder_id, "cidr": str(row.cidr)}
        for row in rows[:_MAX_NAMED]
    ]
    names = ", ".join(f"{holder['id']} ({holder['cidr']})" for holder in holders)
    more = f" and {count - len(holders)} more" if count > len(holders) else ""
    name = cidr.pool.network.name
    message = (
        f"The network {name} has lost its subnet {cidr} while addresses of it are in use:"
        f" {names}{more}. No more addresses are allocated from it."
    )
    details = {"cidrs": [str(cidr)], "blocks": count, "holders": holders}
    yield ReconcileFinding("orphaned_subnet", f"{name} {cidr}", message[:990], details=details)


def nad_findings(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Report NADs that differ from their network, and NADs with the network name of a UDN."""
    rows = NAD.objects.filter(network__cluster=context.cluster, network__gone_at=None)
    rows = rows.exclude(network__kind="").select_related("network")
    ordered = rows.order_by("namespace", "name").iterator(chunk_size=500)
    yield from ingest.find_each(context, resources.NAD.kind, ordered, _findings_of_nad)


def _findings_of_nad(nad: NAD) -> Iterator[ReconcileFinding]:
    has_udn = nad.network.kind in {udn.CUDN, udn.UDN_KIND} and bool(nad.network.uid)
    if has_udn and nad.name != nad.network.object_name:
        message = (
            f"The network attachment definition {nad} belongs to no UDN and has the network name"
            f" {nad.network.name} of a {nad.network.get_kind_display()}. Change its network name."
        )
        details = {"network": nad.network.name}
        yield ReconcileFinding("network_name_taken", str(nad), message, details=details)
    try:
        nad_network = nads.network_of(nad.config, namespace=nad.namespace, name=nad.name)
    except errors.InvalidInput:
        return  # the object's own problem reports it
    if differences := nads.disagreements(nad_network, nad.network):
        yield _nad_differs(nad, differences)


def shared_segments(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Report localnet networks on one physical network and VLAN whose subnets overlap."""
    rows = Network.objects.filter(
        cluster=context.cluster, topology=udn.LOCALNET, gone_at=None
    ).order_by("name")
    networks = {network.pk: network for network in rows}
    pairs = [
        (networks[pk], networks[peer])
        for pk, peer in block_sync.shared_networks(networks.values())
        if pk < peer and peer in networks
    ]
    yield from ingest.find_each(
        context, resources.NAD.kind, pairs, _shared_segment, name=lambda pair: pair[0].name
    )


def _shared_segment(pair: tuple[Network, Network]) -> Iterator[ReconcileFinding]:
    first, second = pair
    subnets = [
        f"{subnet} and {other}" if subnet != other else subnet
        for subnet in first.subnets
        for other in second.subnets
        if _overlap(subnet, other)
    ]
    if subnets:
        message = (
            f"The networks {first.name} and {second.name} are one segment: both are localnet on the same"
            f" physical network and VLAN, with {', '.join(subnets)}. Cadastre gives an address to one of them"
            " only; the cluster may give it to both. Give them other subnets, or use one network."
        )
        details = {"networks": [first.name, second.name], "subnets": subnets}
        yield ReconcileFinding(
            "shared_segment", f"{first.name} {second.name}", message[:990], details=details
        )


def _overlap(subnet: str, other: str) -> bool:
    try:
        return ip_network(subnet).overlaps(ip_network(other))
    except (ValueError, TypeError):  # another family
        return False


def _nad_differs(nad: NAD, differences: Sequence[tuple[str, object, object]]) -> ReconcileFinding:
    listed_differences = "; ".join(
        f"{field.replace('_', ' ')} {_words(nad_value)}, the network {_words(network_value)}"
        for field, nad_value, network_value in differences
    )
    message = (
        f"The network attachment definition {nad} differs from its network {nad.network.name}:"
        f" {listed_differences}."
    )
    fields = [
        {"field": field, "nad": nad_value, "network": network_value}
        for field, nad_value, network_value in differences
    ]
    return ReconcileFinding("nad_differs", str(nad), message[:990], details={"fields": fields})


def _words(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    return str(value) or "none"
