"""What people should know of a cluster's networks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from claims.core.networks import nads, udn
from claims.models import NAD, Network
from claims.networks import pools as network_pools
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.core import errors
from pools.models import PoolCIDR
from pools.models.observed import Severity
from pools.register import pools

_FIRST = 20  # holders in a message
# Conditions of the status (ovn-kubernetes), by type: our code, and what it means when it is False.
_CONDITIONS = {
    "NetworkCreated": (
        "network_not_created",
        "OVN-Kubernetes could not make the network {name} in all its namespaces",
    ),
    "NetworkAllocationSucceeded": (
        "network_allocation_failed",
        "OVN-Kubernetes could not set the network {name} up on all nodes",
    ),
    "TransportAccepted": (
        "network_transport_refused",
        "OVN-Kubernetes does not take the transport of the network {name}",
    ),
}


def of_conditions(context: SyncContext, kind: str) -> Iterator[ReconcileFinding]:
    rows = Network.objects.filter(cluster=context.cluster, kind=kind, gone_at=None)
    for network in rows.exclude(conditions=[]).order_by("name"):
        for condition in network.conditions:
            meaning = _CONDITIONS.get(str(condition.get("type")))
            if meaning and condition.get("status") == "False":
                code, words = meaning
                reason, message = (
                    str(condition.get("reason", "")),
                    str(condition.get("message", "")),
                )
                text = f"{words.format(name=network.name)} ({reason}): {message}"[:990]
                details = {"network": network.name, "reason": reason, "message": message[:2000]}
                yield ReconcileFinding(code, network.name, text, Severity.ERROR, details)


def not_in_cluster(context: SyncContext, kind: str) -> Iterator[ReconcileFinding]:
    """Networks that were made here by hand and that nobody has made in the cluster."""
    rows = Network.objects.filter(
        cluster=context.cluster, kind=kind, uid="", applied=False, gone_at=None
    )
    for network in rows.order_by("name"):
        message = (
            f"The register has the network {network.name}, the cluster has no such object. Apply"
            " its manifest, or delete it here."
        )
        yield ReconcileFinding("network_not_in_cluster", network.name, message)


def network_differs(network: Network, names: Sequence[str]) -> ReconcileFinding:
    listed = ", ".join(names)
    message = (
        f"The network {network.name} is another one in the cluster than was made here: {listed}"
        " differ, and never change. Delete the object there to have it made anew, or let the register"
        " follow it (applied off)."
    )
    return ReconcileFinding(
        "network_differs", network.name, message, Severity.ERROR, {"fields": list(names)}
    )


def orphans(context: SyncContext) -> Iterator[ReconcileFinding]:
    for cidr in network_pools.orphans(context.cluster):
        yield _orphan(cidr)


def _orphan(cidr: PoolCIDR) -> ReconcileFinding:
    rows = pools.blocks_in_use(cidr)
    count = rows.count()
    holders = [
        {"kind": row.holder_kind, "id": row.holder_id, "cidr": str(row.cidr)}
        for row in rows[:_FIRST]
    ]
    names = ", ".join(f"{holder['id']} ({holder['cidr']})" for holder in holders)
    more = f" and {count - len(holders)} more" if count > len(holders) else ""
    name = Network.objects.values_list("name", flat=True).get(pool=cidr.pool_id)
    message = (
        f"The network {name} has lost its subnet {cidr} while addresses of it are in use:"
        f" {names}{more}. Nothing new is handed out of it."
    )
    details = {"cidrs": [str(cidr)], "blocks": count, "holders": holders}
    return ReconcileFinding("orphaned_subnet", f"{name} {cidr}", message[:990], details=details)


def of_nads(context: SyncContext) -> Iterator[ReconcileFinding]:
    """NADs that say otherwise than their network, and those that share the name of a UDN's."""
    rows = NAD.objects.filter(network__cluster=context.cluster, network__gone_at=None)
    rows = rows.exclude(network__kind="").select_related("network")
    for nad in rows.order_by("namespace", "name").iterator(chunk_size=500):
        if _is_stranger(nad):
            yield _shared(nad)
        try:
            nad_network = nads.network_of(nad.config, namespace=nad.namespace, name=nad.name)
        except errors.InvalidInput:
            continue  # the object itself tells it
        if differences := nads.disagreements(nad_network, nad.network):
            yield _disagreeing(nad, differences)


def _is_stranger(nad: NAD) -> bool:
    made_by_object = nad.network.kind in {udn.CUDN, udn.UDN_KIND}
    return made_by_object and bool(nad.network.uid) and nad.name != nad.network.object_name


def _shared(nad: NAD) -> ReconcileFinding:
    message = (
        f"The network attachment definition {nad} was made by hand and calls its network"
        f" {nad.network.name}, as that of a {nad.network.get_kind_display()} is called. Only one of"
        " them can be meant: give it another name."
    )
    return ReconcileFinding(
        "network_name_taken", str(nad), message, details={"network": nad.network.name}
    )


def _disagreeing(nad: NAD, differences: Sequence[tuple[str, object, object]]) -> ReconcileFinding:
    listed_differences = "; ".join(
        f"{field.replace('_', ' ')} {_words(nad_value)}, the network {_words(network_value)}"
        for field, nad_value, network_value in differences
    )
    message = (
        f"The network attachment definition {nad} says otherwise than its network"
        f" {nad.network.name}: {listed_differences}."
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
