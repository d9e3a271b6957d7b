"""Can a network hold VMs whose addresses are given to them: yes, or no, because.

The enhancement proposal demands layer2 and the IPAM lifecycle Persistent, and speaks of primary networks
of ClusterUserDefinedNetworks. OVN-Kubernetes refuses requested addresses on any other network
(enable-preconfigured-udn-addresses: primary and layer2 only).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from claims.core.networks import udn


@dataclass(frozen=True)
class Reason:
    """Why not, or what to mind; `remedy` is what can be done about it, "" for nothing."""

    code: str
    message: str
    remedy: str = ""


@dataclass(frozen=True)
class StaticVMCheck:
    """`reasons` are what stands against it, `notes` what does not keep a network from being fit."""

    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.reasons


class CheckableNetwork(udn.NetworkLike, Protocol):
    """What is asked of a network, beside its NADs."""

    name: str
    kind: str
    object_name: str
    namespace: str
    lifecycle: str
    ipam_mode: str
    uid: str


_ANEW = "All of layer2 is immutable: make a new network and move the VMs there."


def check(network: CheckableNetwork, nads: Sequence[bool], *, gone: bool = False) -> StaticVMCheck:
    """`nads`: for each NAD of the network, whether it allows persistent IPs."""
    if not network.kind:
        message = "Nobody has seen this network in the cluster; only its name is known."
        return StaticVMCheck((Reason("not_seen", message, "Make it, or look for a typing error."),))
    against = [*_reasons_against(network)]
    if gone:
        against.insert(0, Reason("gone", "The network was deleted in the cluster."))
    if nads and not any(nads):
        message = "None of its network attachment definitions allows persistent IPs."
        remedy = "Let OVN-Kubernetes make them anew from a network with lifecycle Persistent."
        against.append(Reason("nad_not_persistent", message, remedy))
    return StaticVMCheck(tuple(against), tuple(_notes(network, nads, gone=gone)))


def _reasons_against(network: CheckableNetwork) -> list[Reason]:
    reasons = []
    if network.topology != udn.LAYER2:
        message = f"Its topology is {network.topology or 'not known'}; layer2 is a must."
        reasons.append(Reason("not_layer2", message, _ANEW))
    if network.role != udn.PRIMARY:
        message = (
            "It is not the primary network of its namespaces; OVN-Kubernetes takes requested"
            " addresses on primary networks only."
        )
        reasons.append(Reason("not_primary", message, _ANEW))
    if network.ipam_mode == udn.DISABLED:
        message = "OVN-Kubernetes hands out no addresses on it (ipam.mode Disabled)."
        reasons.append(Reason("ipam_disabled", message, _ANEW))
    elif network.lifecycle != udn.PERSISTENT:
        message = (
            "Its IPAM lifecycle is not Persistent: a VM that is stopped or moved loses its address."
        )
        reasons.append(Reason("not_persistent", message, _ANEW))
    if not network.subnets:
        reasons.append(Reason("no_subnets", "It has no subnets to take addresses from.", _ANEW))
    return reasons


def _notes(network: CheckableNetwork, nads: Sequence[bool], *, gone: bool) -> list[Reason]:
    notes = []
    if network.kind == udn.UDN_KIND:
        message = (
            "It is a UserDefinedNetwork of one namespace; the enhancement proposal speaks of"
            " ClusterUserDefinedNetworks only."
        )
        notes.append(Reason("not_cluster_udn", message))
    if network.kind in {udn.CUDN, udn.UDN_KIND}:
        expected = udn.logical_name(network.kind, network.object_name, network.namespace)
        if network.name != expected:
            message = f"OVN-Kubernetes would call the network of this object {expected}."
            notes.append(Reason("logical_name", message, "Check the name in a NAD's spec.config."))
    if gone:
        return notes
    if not network.uid and network.kind != udn.NAD_KIND:
        message = "It was made here by hand and has not been seen in the cluster yet."
        notes.append(Reason("not_in_cluster", message, "Apply its manifest."))
    elif not nads:
        message = "No namespace uses it yet: there is no network attachment definition of it."
        remedy = "Check the namespace selector, and the labels of the namespaces it shall select."
        notes.append(Reason("no_nad", message, remedy))
    elif any(nads) and not all(nads):
        message = "Some of its network attachment definitions do not allow persistent IPs."
        notes.append(Reason("some_nads_not_persistent", message))
    return notes
