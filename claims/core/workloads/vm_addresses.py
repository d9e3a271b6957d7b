"""Chooses the addresses of a VM on the primary network of its namespace.

The sources are the MAC entries of the network's IPPool, and the IPAMClaim of the VM. Addresses that
OVN-Kubernetes would refuse are not requested (claims/core/networks/static_vms.py).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_interface

from claims.core.ipamclaims import ipamclaim
from claims.core.networks import kept_addresses, static_vms, udn
from claims.core.networks.static_vms import DeclinedError
from claims.core.workloads import network_selection


@dataclass
class PrimaryNetwork:
    """A primary network of the namespace, with the NAD (`namespace/name`) that attaches it."""

    name: str
    nad: str
    topology: str = udn.LAYER2
    role: str = udn.PRIMARY
    persistent: bool = True  # the NAD's allowPersistentIPs
    subnets: tuple[str, ...] = ()
    default_gateways: tuple[str, ...] = ()
    reserved_subnets: tuple[str, ...] = ()
    infrastructure_subnets: tuple[str, ...] = ()
    exclude_subnets: tuple[str, ...] = ()
    join_subnets: tuple[str, ...] = ()


@dataclass(frozen=True)
class MACEntry:
    """A MAC entry of the IPPool of `network`."""

    network: str
    mac: str
    ips: tuple[str, ...]
    vm: str = ""
    namespace: str = ""
    ippool: str = ""


@dataclass(frozen=True)
class UnusableEntry:
    """An entry of an IPPool's object that is not valid; `message` is the reason."""

    network: str
    mac: str
    ippool: str
    message: str


@dataclass(frozen=True)
class Claim:
    """An IPAMClaim of the VM's namespace, with `requested` and granted addresses (`ips`)."""

    network: str
    name: str
    vm: str = ""
    mac: str | None = None
    requested: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    in_cluster: bool = True  # False if only the register has the claim


@dataclass(frozen=True)
class Interface:
    """The VM's interface to the pod network; its name is also the VM's name for the network."""

    name: str
    mac: str | None = None


@dataclass(frozen=True)
class VM:
    """A VM; `observed` is False until one of its objects was observed.

    `interface` is None if the VM has no interface to the pod network.
    """

    namespace: str
    name: str
    observed: bool = False
    interface: Interface | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Registrations:
    """The namespace's primary networks, and the entries and claims that may belong to the VM."""

    networks: tuple[PrimaryNetwork, ...] = ()
    entries: tuple[MACEntry, ...] = ()
    claims: tuple[Claim, ...] = ()
    unusable: tuple[UnusableEntry, ...] = ()


@dataclass(frozen=True)
class AddressChoice:
    """The addresses to request, with the prefix length of their subnet, IPv4 first."""

    network: str
    mac: str | None
    ips: tuple[str, ...]
    claim: str  # name of the IPAMClaim, "" if no name is valid
    because: str  # the source, for messages: an entry of the IPPool x
    notes: tuple[str, ...] = ()


# Reasons that may name a VM or namespace that whoever sees the pod may not see, by code, with the reason for them.
NAMING_OTHERS = {
    "entry_of_another_vm": "the entry of the VM's MAC belongs to another VM",
    "nad_missing": "an entry names the VM, but its namespace has no NAD of a primary network",
}


@dataclass(frozen=True)
class _AddressRequest:
    mac: str | None
    ips: tuple[str, ...]
    because: str
    note: str = ""


def choose(vm: VM, registrations: Registrations, owner_ips: Sequence[str] = ()) -> AddressChoice:
    """Choose the addresses of a VM.

    A MAC entry has precedence over the request of a claim, and that over the request of the VM's owner
    (`owner_ips`). The granted addresses of a claim have precedence over all, because OVN-Kubernetes
    refuses others as long as the claim has them. Raises DeclinedError: no_primary_network, nad_missing, several_networks, not_layer2,
    not_persistent, no_interface, entry_of_another_vm, mac_differs, ambiguous_entries, ambiguous_claims,
    claim_of_another_vm, no_entry, unusable_entry, unusable_mac, and those of static_vms.fit.
    """
    network = _network(vm, registrations)
    if vm.observed and vm.interface is None:
        raise DeclinedError("no_interface", f"the VM {vm} has no interface to the pod network")
    entries = [entry for entry in registrations.entries if entry.network == network.name]
    claims = [claim for claim in registrations.claims if claim.network == network.name]
    name, notes = _claim_name(vm, network, claims)
    named_claim, other_claims = _claims(vm, name, claims)
    request = (
        _of_entry(vm, entries)
        or _of_claim(vm, named_claim)
        or _of_claims(vm, other_claims)
        or _of_grant(vm, network, named_claim)
    )
    if request is None and owner_ips:
        request = _AddressRequest(
            _mac(vm), tuple(owner_ips), "the VM's own network selection element"
        )
    if request is None:
        raise _no_request_error(vm, network, registrations)
    request = _granted(request, named_claim)
    ips = static_vms.fit(request.ips, network, request.because)
    if kept_span := kept_addresses.kept_macs(network).get(request.mac or ""):
        message = f"the MAC {request.mac} of {vm} is that of the network's {kept_span.port}"
        raise DeclinedError("unusable_mac", message)
    notes += (request.note,) if request.note else ()
    return AddressChoice(network.name, request.mac, ips, name, request.because, notes)


def _no_request_error(
    vm: VM, network: PrimaryNetwork, registrations: Registrations
) -> DeclinedError:
    """Return the error for a VM without a request, or with an entry that is not valid."""
    for entry in registrations.unusable:
        if entry.network == network.name and entry.mac == _mac(vm):
            message = f"the entry of {entry.mac} in the IPPool {entry.ippool} is not valid: {entry.message}"
            return DeclinedError("unusable_entry", message)
    message = f"neither a MAC entry nor an IPAMClaim of {network.name} requests addresses for {vm}"
    return DeclinedError("no_entry", message)


# --- the network ----------------------------------------------------------------------------------


def _network(vm: VM, registrations: Registrations) -> PrimaryNetwork:
    if not registrations.networks:
        named_entries = [
            entry for entry in registrations.entries if entry.vm == vm.name and entry.vm
        ]
        if named_entries:
            raise DeclinedError(
                "nad_missing",
                f"an entry of {named_entries[0].network} names {vm}, but {vm.namespace} has no NAD of a"
                " primary network",
                # The name of a network may have the name of another namespace.
                f"an entry names {vm}, but {vm.namespace} has no NAD of a primary network",
            )
        raise DeclinedError(
            "no_primary_network", f"the namespace {vm.namespace} has no primary network"
        )
    if len(registrations.networks) > 1:
        names = ", ".join(sorted(candidate.nad for candidate in registrations.networks))
        message = f"the namespace {vm.namespace} has several primary networks: {names}"
        raise DeclinedError("several_networks", message)
    (network,) = registrations.networks
    if network.topology not in {udn.LAYER2, ""}:
        message = f"the network {network.name} is {network.topology}; only layer2 accepts requested addresses"
        raise DeclinedError("not_layer2", message)
    if not network.persistent:
        message = (
            f"the NAD {network.nad} does not allow persistent IPs: the VM would lose its addresses"
        )
        raise DeclinedError("not_persistent", message)
    return network


# --- whose addresses ------------------------------------------------------------------------------


def _of_entry(vm: VM, entries: Sequence[MACEntry]) -> _AddressRequest | None:
    """Return the request of the MAC entry for the VM's MAC, or for its name if it has no MAC yet."""
    mac = _mac(vm)
    named_entries = [
        entry for entry in entries if (entry.namespace, entry.vm) == (vm.namespace, vm.name)
    ]
    matching_entries = named_entries
    if mac is not None:
        matching_entries = [entry for entry in entries if entry.mac == mac]
        own_entries = [entry for entry in matching_entries if _may_be_of(entry, vm)]
        if matching_entries and not own_entries:
            other = matching_entries[0]
            owner = "/".join(filter(None, (other.namespace, other.vm)))
            message = f"the entry of {mac} belongs to {owner}, not to {vm}"
            answer = f"the entry of {mac} belongs to another VM, not to {vm}"
            raise DeclinedError(
                "entry_of_another_vm", message, "" if other.namespace == vm.namespace else answer
            )
        if not own_entries and named_entries:
            message = f"the VM {vm} has the MAC {mac}, but its entry has {named_entries[0].mac}"
            raise DeclinedError("mac_differs", message)
        matching_entries = own_entries
    return _only(vm, matching_entries)


def _only(vm: VM, entries: Sequence[MACEntry]) -> _AddressRequest | None:
    exact = [entry for entry in entries if (entry.namespace, entry.vm) == (vm.namespace, vm.name)]
    different = {(entry.mac, entry.ips): entry for entry in exact or entries}
    if len(different) > 1:
        summary = "; ".join(sorted(f"{mac} {', '.join(ips)}" for mac, ips in different))
        raise DeclinedError("ambiguous_entries", f"the VM {vm} has several entries: {summary}")
    for (mac, ips), entry in different.items():
        return _AddressRequest(mac, ips, f"an entry of the IPPool {entry.ippool or entry.network}")
    return None


def _mac(vm: VM) -> str | None:
    return vm.interface.mac if vm.interface else None


def _may_be_of(entry: MACEntry, vm: VM) -> bool:
    return entry.vm in {"", vm.name} and entry.namespace in {"", vm.namespace}


def _of_claim(vm: VM, claim: Claim | None) -> _AddressRequest | None:
    """Return the request of the VM's claim, in the decentralized form."""
    if claim is None or not (claim.requested or claim.mac):
        return None
    mac = _mac(vm)
    if mac and claim.mac and mac != claim.mac:
        message = (
            f"the VM {vm} has the MAC {mac}, but its IPAMClaim {claim.name} requests {claim.mac}"
        )
        raise DeclinedError("mac_differs", message)
    if not (claim.requested or claim.ips):
        return None
    return _AddressRequest(
        claim.mac or mac, claim.requested or claim.ips, f"the request of the IPAMClaim {claim.name}"
    )


def _of_grant(vm: VM, network: PrimaryNetwork, claim: Claim | None) -> _AddressRequest | None:
    """Return a request for the granted addresses of a claim with an unusual name, to refer to it."""
    interface = vm.interface.name if vm.interface else ""
    if claim is None or not claim.ips:
        return None
    if ipamclaim.is_name_of(claim.name, vm.name, [interface or network.name]):
        return None
    return _AddressRequest(_mac(vm), claim.ips, f"the IPAMClaim {claim.name}")


def _granted(request: _AddressRequest, claim: Claim | None) -> _AddressRequest:
    if claim is None or not claim.ips or network_selection.same_addresses(claim.ips, request.ips):
        return request
    note = (
        f"{request.because} has {', '.join(request.ips)}, but the IPAMClaim {claim.name} has"
        f" {', '.join(claim.ips)}: the former takes effect when the claim is deleted"
    )
    return _AddressRequest(request.mac, claim.ips, f"the IPAMClaim {claim.name}", note)


def _of_claims(vm: VM, claims: Sequence[Claim]) -> _AddressRequest | None:
    """Return the request of the VM's claims with other names, which must agree."""
    requests = [request for claim in claims if (request := _of_claim(vm, claim))]
    if len({frozenset(map(ip_interface, request.ips)) for request in requests}) > 1:
        names = ", ".join(claim.name for claim in claims)
        message = f"the IPAMClaims of {vm} request different addresses: {names}"
        raise DeclinedError("ambiguous_claims", message)
    return requests[0] if requests else None


def _claim_name(
    vm: VM, network: PrimaryNetwork, claims: Sequence[Claim]
) -> tuple[str, tuple[str, ...]]:
    """Return the claim name of kubevirt/ipam-extensions, or that of the VM's only claim, and notes."""
    vm_network = vm.interface.name if vm.interface else ""
    name = ipamclaim.compose_key(vm.name, vm_network or network.name)
    existing_names = sorted(
        claim.name
        for claim in claims
        if _belongs_to(claim, vm) and (claim.in_cluster or not vm_network)
    )
    if existing_names and (not vm_network or name not in {claim.name for claim in claims}):
        return existing_names[0], ()
    codes = {
        problem.code for problem in ipamclaim.name_problems(vm.name, vm_network or network.name)
    }
    if "name_impossible" in codes:
        return "", ("no IPAMClaim is referenced: its name would be too long",)
    note = f"the IPAMClaim's name is cut at {ipamclaim.MAX_NAME_LENGTH} characters"
    return name, (note,) if "name_cut" in codes else ()


def _claims(vm: VM, name: str, claims: Sequence[Claim]) -> tuple[Claim | None, list[Claim]]:
    """Return the claim that the pod refers to, and the other claims of the VM."""
    named_claim = next((claim for claim in claims if claim.name == name), None)
    if named_claim is not None and named_claim.vm not in {"", vm.name}:
        message = f"the IPAMClaim {name} of {vm} belongs to another VM, {named_claim.vm}"
        raise DeclinedError("claim_of_another_vm", message)
    other_claims = [
        claim for claim in claims if _belongs_to(claim, vm) and claim is not named_claim
    ]
    return named_claim, other_claims


def _belongs_to(claim: Claim, vm: VM) -> bool:
    """Return True if a claim names the VM, or names none and requests the VM's MAC."""
    return claim.vm == vm.name or bool(not claim.vm and claim.mac and claim.mac == _mac(vm))
