"""Which addresses a VM gets on the primary network of its namespace, and why it gets none.

The register is what is asked: the MAC entries of the network's IPPool, and the IPAMClaim of the VM.
Addresses that OVN-Kubernetes would refuse are not written (claims/core/address_requests.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_interface

from claims.core import address_requests
from claims.core.address_requests import DeclinedError
from claims.core.ipamclaims import names as ipamclaim_names
from claims.core.networks import udn
from claims.core.workloads import network_selection


@dataclass
class PrimaryNetwork:
    """A primary network of the namespace, by the NAD (`namespace/name`) that brings it there."""

    name: str
    nad: str
    topology: str = udn.LAYER2
    role: str = udn.PRIMARY
    persistent: bool = True  # the NAD's allowPersistentIPs
    subnets: tuple[str, ...] = ()
    default_gateways: tuple[str, ...] = ()


@dataclass(frozen=True)
class Entry:
    """A MAC entry of the IPPool of `network`."""

    network: str
    mac: str
    ips: tuple[str, ...]
    vm: str = ""
    namespace: str = ""
    ippool: str = ""


@dataclass(frozen=True)
class UnusableEntry:
    """An entry that stands in the object of an IPPool and that the register could not take in."""

    network: str
    mac: str
    ippool: str
    message: str  # why


@dataclass(frozen=True)
class Claim:
    """An IPAMClaim of the VM's namespace: what it asks for, and what was granted (`ips`)."""

    network: str
    name: str
    vm: str = ""
    mac: str | None = None
    requested: tuple[str, ...] = ()
    ips: tuple[str, ...] = ()
    in_cluster: bool = True  # False: the register has it, and no cluster was seen to


@dataclass(frozen=True)
class Interface:
    """The VM's interface to the pod network: its name, which is the network's, and its MAC."""

    name: str
    mac: str | None = None


@dataclass(frozen=True)
class VM:
    """The VM as its objects say it; `seen` is False when none of them has been seen yet.

    `interface` is None without an interface to the pod network.
    """

    namespace: str
    name: str
    seen: bool = False
    interface: Interface | None = None

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"


@dataclass(frozen=True)
class Known:
    """What the register knows: the namespace's primary networks, and what may be of the VM."""

    networks: tuple[PrimaryNetwork, ...] = ()
    entries: tuple[Entry, ...] = ()
    claims: tuple[Claim, ...] = ()
    unusable: tuple[UnusableEntry, ...] = ()


@dataclass(frozen=True)
class Choice:
    """What is to be asked for: addresses with the length of their subnet, IPv4 first."""

    network: str
    mac: str | None
    ips: tuple[str, ...]
    claim: str  # name of the IPAMClaim, "" when none can be named
    because: str  # an entry of the IPPool x
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Wanted:
    mac: str | None
    ips: tuple[str, ...]
    because: str
    note: str = ""


def choose(vm: VM, known: Known, own: Sequence[str] = ()) -> Choice:
    """The addresses of the VM.

    An entry comes before the request of a claim, and that before what the VM's owner asks for (`own`);
    but what a claim was granted comes before all: as long as it has addresses OVN-Kubernetes refuses
    others. Raises DeclinedError: no_primary_network, nad_missing, several_networks, not_layer2,
    not_persistent, no_interface, entry_of_another_vm, mac_differs, ambiguous_entries, ambiguous_claims,
    claim_of_another_vm, no_entry, unusable_entry, and those of address_requests.fit.
    """
    network = _network(vm, known)
    if vm.seen and vm.interface is None:
        raise DeclinedError("no_interface", f"{vm} has no interface to the pod network")
    known = Known(
        (network,),
        tuple(one for one in known.entries if one.network == network.name),
        tuple(one for one in known.claims if one.network == network.name),
        tuple(one for one in known.unusable if one.network == network.name),
    )
    name, notes = _claim_name(vm, network, known.claims)
    called, others = _claims(vm, name, known.claims)
    wanted = (
        _of_entry(vm, known.entries)
        or _of_claim(vm, called)
        or _of_claims(vm, others)
        or _of_grant(vm, network, called)
    )
    if wanted is None and own:
        wanted = _Wanted(_mac(vm), tuple(own), "the VM's own network selection element")
    if wanted is None:
        raise _nothing(vm, network, known)
    wanted = _granted(wanted, called)
    ips = address_requests.fit(wanted.ips, network, wanted.because)
    notes += (wanted.note,) if wanted.note else ()
    return Choice(network.name, wanted.mac, ips, name, wanted.because, notes)


def _nothing(vm: VM, network: PrimaryNetwork, known: Known) -> DeclinedError:
    """Nobody asks for addresses, or somebody does in vain."""
    for one in known.unusable:
        if one.mac == _mac(vm):
            message = (
                f"the entry of {one.mac} in the IPPool {one.ippool} cannot be used: {one.message}"
            )
            return DeclinedError("unusable_entry", message)
    message = f"neither a MAC entry nor an IPAMClaim of {network.name} asks for addresses for {vm}"
    return DeclinedError("no_entry", message)


# --- the network ----------------------------------------------------------------------------------


def _network(vm: VM, known: Known) -> PrimaryNetwork:
    if not known.networks:
        named = [one for one in known.entries if one.vm == vm.name and one.vm]
        if named:
            raise DeclinedError(
                "nad_missing",
                f"an entry of {named[0].network} names {vm}, but the register knows no NAD of a"
                f" primary network in {vm.namespace}",
            )
        raise DeclinedError("no_primary_network", f"{vm.namespace} has no primary network")
    if len(known.networks) > 1:
        names = ", ".join(sorted(one.nad for one in known.networks))
        raise DeclinedError("several_networks", f"{vm.namespace} has several: {names}")
    (network,) = known.networks
    if network.topology not in {udn.LAYER2, ""}:
        message = f"{network.name} is {network.topology}; only layer2 takes requested addresses"
        raise DeclinedError("not_layer2", message)
    if not network.persistent:
        message = f"the NAD {network.nad} does not allow persistent IPs: addresses would not stay"
        raise DeclinedError("not_persistent", message)
    return network


# --- whose addresses ------------------------------------------------------------------------------


def _of_entry(vm: VM, entries: Sequence[Entry]) -> _Wanted | None:
    """By the VM's MAC; by its name when it has none yet."""
    mac = _mac(vm)
    named = [one for one in entries if (one.namespace, one.vm) == (vm.namespace, vm.name)]
    found = named
    if mac is not None:
        found = [one for one in entries if one.mac == mac]
        own = [one for one in found if _may_be_of(one, vm)]
        if found and not own:
            message = f"the entry of {mac} is of {_whose(found[0])}, not of {vm}"
            raise DeclinedError("entry_of_another_vm", message)
        if not own and named:
            message = f"{vm} has the MAC {mac}, its entry {named[0].mac}"
            raise DeclinedError("mac_differs", message)
        found = own
    return _only(vm, found)


def _only(vm: VM, found: Sequence[Entry]) -> _Wanted | None:
    exact = [one for one in found if (one.namespace, one.vm) == (vm.namespace, vm.name)]
    different = {(one.mac, one.ips): one for one in exact or found}
    if len(different) > 1:
        said = "; ".join(sorted(f"{mac} {', '.join(ips)}" for mac, ips in different))
        raise DeclinedError("ambiguous_entries", f"{vm} has several entries: {said}")
    for (mac, ips), one in different.items():
        return _Wanted(mac, ips, f"an entry of the IPPool {one.ippool or one.network}")
    return None


def _mac(vm: VM) -> str | None:
    return vm.interface.mac if vm.interface else None


def _may_be_of(entry: Entry, vm: VM) -> bool:
    return entry.vm in {"", vm.name} and entry.namespace in {"", vm.namespace}


def _whose(entry: Entry) -> str:
    return "/".join(filter(None, (entry.namespace, entry.vm)))


def _of_claim(vm: VM, claim: Claim | None) -> _Wanted | None:
    """What the VM's claim asks for, in the decentralized form."""
    if claim is None or not (claim.requested or claim.mac):
        return None
    mac = _mac(vm)
    if mac and claim.mac and mac != claim.mac:
        message = f"{vm} has the MAC {mac}, its IPAMClaim {claim.name} asks for {claim.mac}"
        raise DeclinedError("mac_differs", message)
    if not (claim.requested or claim.ips):
        return None
    return _Wanted(
        claim.mac or mac, claim.requested or claim.ips, f"the request of the IPAMClaim {claim.name}"
    )


def _of_grant(vm: VM, network: PrimaryNetwork, claim: Claim | None) -> _Wanted | None:
    """What a claim has by whose name nobody else would refer to it."""
    interface = vm.interface.name if vm.interface else ""
    if claim is None or not claim.ips:
        return None
    if ipamclaim_names.is_of(claim.name, vm.name, [interface or network.name]):
        return None
    return _Wanted(_mac(vm), claim.ips, f"the IPAMClaim {claim.name}")


def _granted(wanted: _Wanted, claim: Claim | None) -> _Wanted:
    if claim is None or not claim.ips or network_selection.same_addresses(claim.ips, wanted.ips):
        return wanted
    note = (
        f"{wanted.because} says {', '.join(wanted.ips)}, but the IPAMClaim {claim.name} has"
        f" {', '.join(claim.ips)}: it comes into effect when the claim is gone"
    )
    return _Wanted(wanted.mac, claim.ips, f"the IPAMClaim {claim.name}", note)


def _of_claims(vm: VM, claims: Sequence[Claim]) -> _Wanted | None:
    """What the VM's claims of other names ask for, the same from all of them."""
    requests = [request for claim in claims if (request := _of_claim(vm, claim))]
    if len({frozenset(map(ip_interface, request.ips)) for request in requests}) > 1:
        names = ", ".join(claim.name for claim in claims)
        message = f"the IPAMClaims of {vm} ask for different addresses: {names}"
        raise DeclinedError("ambiguous_claims", message)
    return requests[0] if requests else None


def _claim_name(
    vm: VM, network: PrimaryNetwork, claims: Sequence[Claim]
) -> tuple[str, tuple[str, ...]]:
    """As kubevirt/ipam-extensions calls it, unless only a claim of another name stands for the VM."""
    called = vm.interface.name if vm.interface else ""
    name = ipamclaim_names.compose_key(vm.name, called or network.name)
    there = sorted(
        claim.name
        for claim in claims
        if _stands_for(claim, vm) and (claim.in_cluster or not called)
    )
    if there and (not called or name not in {claim.name for claim in claims}):
        return there[0], ()
    codes = {problem.code for problem in ipamclaim_names.problems(vm.name, called or network.name)}
    if "name_impossible" in codes:
        return "", ("no IPAMClaim is named: a name for it would be too long",)
    note = f"the IPAMClaim's name is cut at {ipamclaim_names.LONGEST} characters"
    return name, (note,) if "name_cut" in codes else ()


def _claims(vm: VM, name: str, claims: Sequence[Claim]) -> tuple[Claim | None, list[Claim]]:
    """The claim that the pod refers to, and the others that stand for the VM."""
    called = next((claim for claim in claims if claim.name == name), None)
    if called is not None and called.vm not in {"", vm.name}:
        message = f"the IPAMClaim {name} is of the VM {called.vm}; {vm} would have one of that name"
        raise DeclinedError("claim_of_another_vm", message)
    others = [claim for claim in claims if _stands_for(claim, vm) and claim is not called]
    return called, others


def _stands_for(claim: Claim, vm: VM) -> bool:
    """By the VM that it names; one that names none by the MAC that it asks for."""
    return claim.vm == vm.name or bool(not claim.vm and claim.mac and claim.mac == _mac(vm))
