"""What OVN-Kubernetes requires of VMs with static addresses: of their network, and of the addresses.

The enhancement proposal requires layer2 and the IPAM lifecycle Persistent, and covers primary networks
of ClusterUserDefinedNetworks. OVN-Kubernetes refuses requested addresses on other networks
(enable-preconfigured-udn-addresses: primary and layer2 only).

Imports, waves and the webhooks check addresses here before they write them for a VM. OVN-Kubernetes
refuses other addresses (go-controller/pkg/allocator/pod, as of 2026), and then the VM does not start.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_interface
from typing import Protocol

from claims.core.networks import kept_addresses, udn
from claims.core.networks.kept_addresses import KeptSpan
from pools.core.addresses import Interface as Address, Network as Subnet


@dataclass(frozen=True)
class Reason:
    """A reason against the network, or a note; `remedy` is what a user can do, or ""."""

    code: str
    message: str
    remedy: str = ""


@dataclass(frozen=True)
class StaticVMCheck:
    """Result of the check: `reasons` rule static VMs out, `notes` do not."""

    reasons: tuple[Reason, ...] = ()
    notes: tuple[Reason, ...] = ()

    @property
    def ok(self) -> bool:
        return not self.reasons


class CheckableNetwork(udn.NetworkLike, Protocol):
    """The fields of a network that the check reads."""

    name: str
    kind: str
    object_name: str
    namespace: str
    lifecycle: str
    ipam_mode: str
    uid: str


_IMMUTABLE = "Networks are immutable: create a new network and move the VMs there."


def check(network: CheckableNetwork, nads: Sequence[bool], *, gone: bool = False) -> StaticVMCheck:
    """Check a network; `nads` has, for each of its NADs, whether it allows persistent IPs."""
    if not network.kind:
        message = "This network was not observed in the cluster; only its name is known."
        return StaticVMCheck(
            (Reason("not_seen", message, "Create it, or check the name for a typing error."),)
        )
    reasons = [*_reasons(network)]
    if gone:
        reasons.insert(0, Reason("gone", "The network was deleted in the cluster."))
    if nads and not any(nads):
        message = "None of its network attachment definitions allows persistent IPs."
        remedy = "Have OVN-Kubernetes create them again from a network with lifecycle Persistent."
        reasons.append(Reason("nad_not_persistent", message, remedy))
    return StaticVMCheck(tuple(reasons), tuple(_notes(network, nads, gone=gone)))


def _reasons(network: CheckableNetwork) -> list[Reason]:
    reasons = []
    if network.topology != udn.LAYER2:
        message = f"Its topology is {network.topology or 'unknown'}; layer2 is required."
        reasons.append(Reason("not_layer2", message, _IMMUTABLE))
    if network.role != udn.PRIMARY:
        message = (
            "It is not the primary network of its namespaces; OVN-Kubernetes accepts requested"
            " addresses on primary networks only."
        )
        reasons.append(Reason("not_primary", message, _IMMUTABLE))
    if network.ipam_mode == udn.DISABLED:
        message = "OVN-Kubernetes allocates no addresses on it (ipam.mode Disabled)."
        reasons.append(Reason("ipam_disabled", message, _IMMUTABLE))
    elif network.lifecycle != udn.PERSISTENT:
        message = "Its IPAM lifecycle is not Persistent: a VM loses its address when it is stopped or moved."
        reasons.append(Reason("not_persistent", message, _IMMUTABLE))
    if not network.subnets:
        reasons.append(Reason("no_subnets", "It has no subnets.", _IMMUTABLE))
    return reasons


def _notes(network: CheckableNetwork, nads: Sequence[bool], *, gone: bool) -> list[Reason]:
    notes = []
    if network.kind == udn.UDN_KIND:
        message = (
            "It is a UserDefinedNetwork of one namespace; the enhancement proposal covers only"
            " ClusterUserDefinedNetworks."
        )
        notes.append(Reason("not_cluster_udn", message))
    if network.kind in {udn.CUDN, udn.UDN_KIND}:
        expected = udn.logical_name(network.kind, network.object_name, network.namespace)
        if network.name != expected:
            message = f"OVN-Kubernetes would name the network of this object {expected}."
            notes.append(Reason("logical_name", message, "Check the name in a NAD's spec.config."))
    notes += [
        Reason("kept_twice", contradiction.message, _IMMUTABLE)
        for contradiction in kept_addresses.contradictions(network)
    ]
    if gone:
        return notes
    if not network.uid and network.kind != udn.NAD_KIND:
        message = "It was created here and has not been observed in the cluster yet."
        notes.append(Reason("not_in_cluster", message, "Apply its manifest."))
    elif not nads:
        message = "No namespace uses it yet: it has no network attachment definition."
        remedy = "Check the namespace selector and the labels of the namespaces."
        notes.append(Reason("no_nad", message, remedy))
    elif any(nads) and not all(nads):
        message = "Some of its network attachment definitions do not allow persistent IPs."
        notes.append(Reason("some_nads_not_persistent", message))
    return notes


TOO_MANY, MISSING = "too_many_addresses", "family_missing"


class DeclinedError(Exception):
    """No addresses can be requested; `code` is a stable error code, `message` is the reason.

    `answer` is the reason without names of other namespaces, for whoever asked the API server.
    """

    def __init__(self, code: str, message: str, answer: str = "") -> None:
        self.code = code
        self.message = message
        self.answer = answer or message
        super().__init__(message)


def fit(ips: Iterable[str], network: udn.NetworkLike, source: str) -> tuple[str, ...]:
    """Return the addresses with the prefix lengths of their subnets, IPv4 first.

    If the network has no subnets, the addresses keep their prefix lengths. Error messages begin with
    `source`. Raises DeclinedError: too_many_addresses,
    outside_subnet, unusable_address (OVN-Kubernetes keeps it for the network itself), family_missing.
    """
    requested_addresses = sorted(
        map(ip_interface, ips), key=lambda address: (address.version, address.ip)
    )
    subnets = udn.readable_networks(network.subnets)
    _check_number(requested_addresses, source)
    kept_spans = [
        kept_span for kept_span in kept_addresses.kept_spans(network) if not kept_span.is_note
    ]
    fitting = tuple(
        _within(address, subnets, kept_spans, source) for address in requested_addresses
    )
    _check_missing(requested_addresses, {subnet.version for subnet in subnets}, source)
    return fitting


def check_families(ips: Iterable[str], families: Collection[int], source: str) -> None:
    """Check that there is one address of each family. Raises DeclinedError: too_many_addresses,
    family_missing."""
    requested_addresses = list(map(ip_interface, ips))
    _check_number(requested_addresses, source)
    _check_missing(requested_addresses, families, source)


def _check_number(requested_addresses: Sequence[Address], source: str) -> None:
    if max(Counter(address.version for address in requested_addresses).values(), default=0) > 1:
        listed = ", ".join(str(address.ip) for address in requested_addresses)
        raise DeclinedError(TOO_MANY, f"{source} has two addresses of one family: {listed}")


def _check_missing(
    requested_addresses: Sequence[Address], families: Collection[int], source: str
) -> None:
    missing = set(families) - {address.version for address in requested_addresses}
    if missing and requested_addresses:
        message = f"{source} has no IPv{min(missing)} address; the network needs an address of each family"
        raise DeclinedError(MISSING, message)


def _within(
    address: Address, subnets: Sequence[Subnet], kept_spans: Sequence[KeptSpan], source: str
) -> str:
    if not subnets:  # not known yet
        return str(address)
    subnet = next((candidate for candidate in subnets if address.ip in candidate), None)
    if subnet is None:
        message = f"{source} has {address.ip}, which is in none of the subnets {', '.join(map(str, subnets))}"
        raise DeclinedError("outside_subnet", message)
    kept_span = next((kept_span for kept_span in kept_spans if kept_span.has(address.ip)), None)
    if kept_span is not None:
        message = f"{source} has {address.ip}, which is {kept_span.description}"
        raise DeclinedError("unusable_address", message)
    return f"{address.ip}/{subnet.prefixlen}"
