"""What the register knows about the claims of one network that wait: their own VMs, and their rivals.

Read once for all of them, under the lock of the network's pool; what is granted meanwhile is added.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Network

from django.db.models import Q

from claims.address_index import block_sync, own_addresses
from claims.core.ipamclaims import ipamclaim
from claims.core.workloads import attachments
from claims.ipamclaims.ingest import subnets_of
from claims.models import Entry, IPAMClaim, Network, Workload
from claims.models.workloads import WorkloadKind
from pools.core import addresses, errors
from pools.models import ObservedObject
from pools.platform import database
from pools.sql import statements

Address = addresses.Address
Machine = tuple[str, str]  # namespace and name of a VM


@dataclass(frozen=True)
class Party:
    """Somebody who has a MAC or an address of the network; "" and None are not known."""

    namespace: str
    vm: str
    uid: str
    mac: str | None
    claim: int | None = None
    entry: int | None = None


@dataclass(frozen=True)
class _HeldBlock:
    """A block of the pool that is held, or cools down."""

    kind: str
    id: str
    uid: str


@dataclass
class Contenders:
    """The parties of a network by MAC and by address, its blocks, and what it keeps for itself."""

    network: Network
    waiting: Sequence[IPAMClaim]
    subnets: list[addresses.Network] = field(init=False)
    entries: dict[int, Entry] = field(init=False)
    requests: dict[int, list[str]] = field(init=False)  # of other claims of their VMs
    running: dict[int, Workload] = field(init=False)
    macs: dict[int, frozenset[str]] = field(init=False)  # of the claims' VMs, as far as known

    def __post_init__(self) -> None:
        self.subnets = subnets_of(self.network)
        self._own_macs = own_addresses.macs(self.network)
        self._own_spans = [
            address.span for address in own_addresses.own_spans(self.network) if not address.note
        ]
        self.running = _running(self.network, self.waiting)
        self.macs = _macs(self.network, self.waiting, self.running)
        self.entries = _entries(self.network, self.waiting, self.macs)
        self.requests = _requests(self.network, self.waiting, self.macs)
        requested_hosts = {
            str(ipamclaim.host(text))
            for claim in self.waiting
            for text in self.desired_addresses(claim)
        }
        macs = {claim.mac for claim in self.waiting if claim.mac}
        self._by_mac: dict[str, list[Party]] = {}
        self._by_address: dict[str, list[Party]] = {}
        for address, party in _parties(self.network, requested_hosts, macs):
            self._add(address, party)
        self._blocks = _blocks(self.network, requested_hosts)

    def desired_addresses(self, claim: IPAMClaim) -> list[str]:
        """The addresses that the claim should get: requested, provisioned, requested by another claim
        of its VM, or in use by its VM."""
        if claim.ips_requested:
            return claim.ips_requested
        if claim.pk in self.entries:
            return self.entries[claim.pk].ips
        if claim.pk in self.requests:
            return self.requests[claim.pk]
        return self.running[claim.pk].ips if claim.pk in self.running else []

    def granted(self, claim: IPAMClaim, ips: Iterable[str]) -> None:
        """What was just granted stands in the way of all others; without `ips` only its MAC."""
        party = Party(claim.namespace, claim.vm, claim.vm_uid, claim.mac, claim=claim.pk)
        hosts: list[str | None] = [str(ipamclaim.host(text)) for text in ips]
        for host in hosts or [None]:
            self._add(host, party)

    def _add(self, address: str | None, party: Party) -> None:
        if address:
            self._by_address.setdefault(address, []).append(party)
        if party.mac:
            self._by_mac.setdefault(party.mac, []).append(party)

    def gateway_mac(self, claim: IPAMClaim) -> tuple[str, str] | None:
        """The MAC of the claim's VM and the gateway's address, when that MAC is the gateway's own."""
        mine = sorted(self.macs[claim.pk] & self._own_macs.keys())
        return (mine[0], self._own_macs[mine[0]]) if mine else None

    def mac_taken(self, claim: IPAMClaim) -> bool:
        """Whether another VM has the MAC that is requested."""
        if not claim.mac:
            return False
        return any(_contends(claim, party) for party in self._by_mac.get(claim.mac, ()))

    def outside(self, ips: Iterable[str]) -> list[str]:
        return [
            text
            for text in ips
            if not any(ipamclaim.host(text) in subnet for subnet in self.subnets)
        ]

    def taken_addresses(self, claim: IPAMClaim, ips: Iterable[str]) -> list[str]:
        """Those of the addresses that another has, or the network itself."""
        return [text for text in ips if self._is_taken(claim, ipamclaim.host(text))]

    def _is_taken(self, claim: IPAMClaim, address: Address) -> bool:
        if any(_is_edge(address, subnet) for subnet in self.subnets):
            return True
        spans = (span for span in self._own_spans if span.family == address.version)
        if any(int(span.first) <= int(address) <= int(span.last) for span in spans):
            return True
        macs = self.macs[claim.pk]
        if any(_is_another(claim, macs, party) for party in self._by_address.get(str(address), ())):
            return True
        block = self._blocks.get(str(address))
        return block is not None and not self._is_own(claim, block)

    def _is_own(self, claim: IPAMClaim, block: _HeldBlock) -> bool:
        if block.kind == block_sync.MAC:
            return block.id in self.macs[claim.pk]
        name = block_sync.holder_name(claim.namespace, claim.vm, claim.mac)
        same_vm = not (block.uid and claim.vm_uid) or block.uid == claim.vm_uid
        return (block.kind, block.id) == name and same_vm


def _is_edge(address: Address, subnet: addresses.Network) -> bool:
    """The first address of a subnet, and the last of an IPv4 one, which no host has."""
    if address not in subnet or subnet.num_addresses <= 2:  # RFC 3021
        return False
    last = isinstance(subnet, IPv4Network) and address == subnet.broadcast_address
    return last or address == subnet.network_address


def _is_another_vm(claim: IPAMClaim, party: Party) -> bool:
    """Whether a party is known to be another VM than the claim's; one of its name with another uid is."""
    if party.claim == claim.pk or not (party.vm and claim.vm):
        return False
    namespaces = party.namespace and claim.namespace and party.namespace != claim.namespace
    if namespaces or party.vm != claim.vm:
        return True
    return bool(party.uid and claim.vm_uid and party.uid != claim.vm_uid)


def _contends(claim: IPAMClaim, party: Party) -> bool:
    """Whether a party with the claim's MAC is in its way: two claims are, unless they are one VM's."""
    if party.claim not in {None, claim.pk} and not (party.vm and claim.vm):
        return True
    return _is_another_vm(claim, party)


def _is_another(claim: IPAMClaim, macs: frozenset[str], party: Party) -> bool:
    """The same for whoever has an address; an entry for nobody in particular is for its MAC alone."""
    if party.claim == claim.pk:
        return False
    if party.vm:
        return _is_another_vm(claim, party)
    return party.mac not in macs


# --- what is read ---------------------------------------------------------------------------------


def _machine(claim: IPAMClaim) -> Machine:
    return claim.namespace, claim.vm


def _running(network: Network, waiting: Sequence[IPAMClaim]) -> dict[int, Workload]:
    """What runs of the claims' VMs, by the claim's id."""
    names = {claim.vm for claim in waiting if claim.vm}
    rows = Workload.objects.filter(network=network, kind=WorkloadKind.VMI, name__in=names)
    workloads_by_vm = {(row.namespace, row.name): row for row in rows.order_by("-since", "-pk")}
    running = {}
    for claim in waiting:
        row = workloads_by_vm.get(_machine(claim))
        if row is not None and claim.vm_uid in {"", row.uid, row.vm_uid}:
            running[claim.pk] = row
    return running


def _macs(
    network: Network, waiting: Sequence[IPAMClaim], running: dict[int, Workload]
) -> dict[int, frozenset[str]]:
    """The MACs of the claims' VMs on the network: as requested, as they run, as the VM says it."""
    names = {claim.vm for claim in waiting if claim.vm and not claim.mac}
    macs_by_vm: dict[Machine, tuple[str, set[str]]] = {}
    nads = {str(nad) for nad in network.nads.all()} if names else set()
    rows = ObservedObject.objects.filter(
        cluster=network.cluster_id, kind="VirtualMachine", name__in=names, missed_at=None
    )
    for row in rows:
        with contextlib.suppress(errors.InvalidInput):
            machine = attachments.parse_machine(row.manifest)
            nic_macs = {
                nic.mac
                for nic in machine.nics
                if nic.mac and (nic.nad in nads or not (nic.nad or network.role == "secondary"))
            }
            macs_by_vm[machine.namespace, machine.name] = (machine.uid, nic_macs)
    macs = {}
    for claim in waiting:
        mine = {claim.mac} if claim.mac else set()
        if not mine:
            if claim.pk in running and running[claim.pk].mac:
                mine.add(running[claim.pk].mac)
            uid, of_vm = macs_by_vm.get(_machine(claim), ("", set()))
            mine |= of_vm if claim.vm_uid in {"", uid} else set()
        macs[claim.pk] = frozenset(mac for mac in mine if mac)
    return macs


def _entries(
    network: Network, waiting: Sequence[IPAMClaim], macs: dict[int, frozenset[str]]
) -> dict[int, Entry]:
    """The entry that provisions each claim: for its VM's MAC, else for its VM; of several the first."""
    every = {mac for vm_macs in macs.values() for mac in vm_macs}
    names = {claim.vm for claim in waiting if claim.vm}
    rows = Entry.objects.filter(Q(mac__in=every) | Q(vm__in=names), ippool__network=network)
    by_mac: dict[str, Entry] = {}
    by_vm: dict[Machine, Entry] = {}
    for row in rows.order_by("-pk"):
        by_mac[str(row.mac)] = row
        if row.vm:
            by_vm[row.namespace, row.vm] = row
    entries = {}
    for claim in waiting:
        vm_entry = by_vm.get(_machine(claim)) or by_vm.get(("", claim.vm))
        for_mac = [by_mac[mac] for mac in sorted(macs[claim.pk]) if mac in by_mac]
        mine = [entry for entry in for_mac if entry.vm in {"", claim.vm}]
        if mine or vm_entry:
            entries[claim.pk] = mine[0] if mine else vm_entry
    return {key: entry for key, entry in entries.items() if entry is not None and entry.ips}


def _requests(
    network: Network, waiting: Sequence[IPAMClaim], macs: dict[int, frozenset[str]]
) -> dict[int, list[str]]:
    """What another claim asks for that stands for the same VM, for one claim of the VM only.

    An imported claim has another name than the one that kubevirt/ipam-extensions makes when the VM is
    there, which asks for nothing.
    """
    asking = [claim for claim in waiting if claim.vm and not claim.ips_requested]
    rows = IPAMClaim.objects.filter(
        network=network, vm__in={claim.vm for claim in asking}, gone_at=None
    ).exclude(pk__in=[claim.pk for claim in asking])
    of_vm: dict[Machine, list[IPAMClaim]] = {}
    granted = set()
    for row in rows.order_by("pk"):
        if row.ips_requested:
            of_vm.setdefault(_machine(row), []).append(row)
        else:
            granted |= {ipamclaim.host(text) for text in row.ips}
    ips_by_claim = {}
    for claim in asking:
        listed = of_vm.get(_machine(claim), [])
        for row in listed:
            same_vm = row.vm_uid in {"", claim.vm_uid} or not claim.vm_uid
            ips = row.ips or row.ips_requested
            free = granted.isdisjoint(map(ipamclaim.host, ips))
            if (
                same_vm
                and free
                and (not row.mac or not macs[claim.pk] or row.mac in macs[claim.pk])
            ):
                ips_by_claim[claim.pk] = list(ips)
                listed.remove(row)
                break
    return ips_by_claim


def _parties(
    network: Network, requested_hosts: Iterable[str], macs: Iterable[str]
) -> Iterator[tuple[str | None, Party]]:
    values = {"network": network.pk, "addresses": ",".join(requested_hosts), "macs": ",".join(macs)}
    for address, namespace, vm, uid, mac, claim, entry in database.rows(
        _PARTIES, values, prepare=False
    ):
        yield address, Party(namespace, vm, uid, mac, claim, entry)


_PARTIES = statements.read("claims/address_parties")


def _blocks(network: Network, requested_hosts: Iterable[str]) -> dict[str, _HeldBlock]:
    if network.pool is None:
        return {}
    values = [network.pool.space_id, ",".join(requested_hosts)]
    return {
        address: _HeldBlock(kind, holder, uid)
        for address, kind, holder, uid in database.rows(_BLOCKS, values, prepare=False)
    }


_BLOCKS = """
    SELECT host(cidr), holder_kind, holder_id, holder_uid FROM pools_block
    WHERE space_id = %s AND cidr = ANY(string_to_array(%s, ',')::cidr[])
      AND (state = 'held' OR state = 'cooling' AND available_from > ipam_clock())
"""
