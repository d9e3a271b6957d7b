"""The waiting claims of one network: what is known of their VMs, and who contends for their addresses.

Everything is read once for all claims, under the lock of the network's pool; new grants are added.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from django.db.models import Q

from claims.address_index import block_sync, conflicts
from claims.core.ipamclaims import ipamclaim
from claims.core.networks import kept_addresses, udn
from claims.core.networks.kept_addresses import KeptSpan
from claims.core.workloads import attachments
from claims.models import Entry, IPAMClaim, Network, Workload
from claims.models.workloads import WorkloadKind
from pools.core import addresses, errors
from pools.models import ObservedObject
from pools.platform import database
from pools.sql import statements

Address = addresses.Address
VMKey = tuple[str, str]  # namespace and name of a VM


@dataclass(frozen=True)
class Party:
    """A VM, claim or entry that has a MAC or an address of the network; "" and None are unknown values."""

    namespace: str
    vm: str
    uid: str
    mac: str | None
    claim: int | None = None
    entry: int | None = None


@dataclass(frozen=True)
class _HeldBlock:
    """A block of the pool that is held or in cooldown."""

    kind: str
    id: str
    uid: str


@dataclass
class Contenders:
    """The parties of a network by MAC and by address, its blocks, and its own addresses and MACs."""

    network: Network
    claims: Sequence[IPAMClaim]
    subnets: list[addresses.Network] = field(init=False)
    entries: dict[int, Entry] = field(init=False)
    requests: dict[int, list[str]] = field(init=False)  # by other claims of the same VMs
    running: dict[int, Workload] = field(init=False)
    macs: dict[int, frozenset[str]] = field(init=False)  # known MACs of the claims' VMs

    def __post_init__(self) -> None:
        self.subnets = udn.readable_networks(self.network.subnets)
        self._own_macs = kept_addresses.kept_macs(self.network)
        self._own_spans = [
            span for span in conflicts.find_own_spans(self.network) if not span.is_note
        ]
        self.running = _running(self.network, self.claims)
        self.macs = _macs(self.network, self.claims, self.running)
        self.entries = _entries(self.network, self.claims, self.macs)
        self.requests = _requests(self.network, self.claims, self.macs)
        requested_hosts = {
            str(ipamclaim.host(text))
            for claim in self.claims
            for text in self.desired_addresses(claim)
        }
        macs = {claim.mac for claim in self.claims if claim.mac}
        self._by_mac: dict[str, list[Party]] = {}
        self._by_address: dict[str, list[Party]] = {}
        for address, party in _parties(self.network, requested_hosts, macs):
            self._add(address, party)
        self._blocks = _blocks(self.network, requested_hosts)

    def desired_addresses(self, claim: IPAMClaim) -> list[str]:
        """Return the addresses that the claim should get.

        These are the requested ones, else those of its entry, else those that another claim of its VM
        requests, else those that its VM uses.
        """
        if claim.ips_requested:
            return claim.ips_requested
        if claim.pk in self.entries:
            return self.entries[claim.pk].ips
        if claim.pk in self.requests:
            return self.requests[claim.pk]
        return self.running[claim.pk].ips if claim.pk in self.running else []

    def add_granted(self, claim: IPAMClaim, ips: Iterable[str]) -> None:
        """Record a grant, so that its MAC and addresses are taken for all other claims."""
        party = Party(claim.namespace, claim.vm, claim.vm_uid, claim.mac, claim=claim.pk)
        hosts: list[str | None] = [str(ipamclaim.host(text)) for text in ips]
        for host in hosts or [None]:
            self._add(host, party)

    def _add(self, address: str | None, party: Party) -> None:
        if address:
            self._by_address.setdefault(address, []).append(party)
        if party.mac:
            self._by_mac.setdefault(party.mac, []).append(party)

    def kept_mac(self, claim: IPAMClaim) -> tuple[str, KeptSpan] | None:
        """Return the MAC of the claim's VM if the network keeps it, and whose MAC it is."""
        kept_macs = sorted(self.macs[claim.pk] & self._own_macs.keys())
        return (kept_macs[0], self._own_macs[kept_macs[0]]) if kept_macs else None

    def is_mac_taken(self, claim: IPAMClaim) -> bool:
        """Return True if another VM has the requested MAC."""
        if not claim.mac:
            return False
        return any(_contends_for_mac(claim, party) for party in self._by_mac.get(claim.mac, ()))

    def addresses_outside(self, ips: Iterable[str]) -> list[str]:
        return [
            text
            for text in ips
            if not any(ipamclaim.host(text) in subnet for subnet in self.subnets)
        ]

    def taken_addresses(self, claim: IPAMClaim, ips: Iterable[str]) -> list[str]:
        """Return the addresses that another party or the network itself has."""
        return [text for text in ips if self._is_taken(claim, ipamclaim.host(text))]

    def _is_taken(self, claim: IPAMClaim, address: Address) -> bool:
        if any(span.has(address) for span in self._own_spans):
            return True
        macs = self.macs[claim.pk]
        if any(
            _contends_for_address(claim, macs, party)
            for party in self._by_address.get(str(address), ())
        ):
            return True
        block = self._blocks.get(str(address))
        return block is not None and not self._is_own(claim, block)

    def _is_own(self, claim: IPAMClaim, block: _HeldBlock) -> bool:
        if block.kind == block_sync.MAC:
            return block.id in self.macs[claim.pk]
        name = block_sync.holder_name(claim.namespace, claim.vm, claim.mac)
        same_vm = not (block.uid and claim.vm_uid) or block.uid == claim.vm_uid
        return (block.kind, block.id) == name and same_vm


def _is_another_vm(claim: IPAMClaim, party: Party) -> bool:
    """Return True if a party is known to be another VM: by namespace, name, or uid of the same name."""
    if party.claim == claim.pk or not (party.vm and claim.vm):
        return False
    is_other_namespace = party.namespace and claim.namespace and party.namespace != claim.namespace
    if is_other_namespace or party.vm != claim.vm:
        return True
    return bool(party.uid and claim.vm_uid and party.uid != claim.vm_uid)


def _contends_for_mac(claim: IPAMClaim, party: Party) -> bool:
    """Return True if a party with the claim's MAC conflicts: another claim does, unless its VM is the same."""
    if party.claim not in {None, claim.pk} and not (party.vm and claim.vm):
        return True
    return _is_another_vm(claim, party)


def _contends_for_address(claim: IPAMClaim, macs: frozenset[str], party: Party) -> bool:
    """Return True if a party with the claim's address conflicts; an entry without VM belongs to its MAC."""
    if party.claim == claim.pk:
        return False
    if party.vm:
        return _is_another_vm(claim, party)
    return party.mac not in macs


# --- queries --------------------------------------------------------------------------------------


def _vm_key(claim: IPAMClaim) -> VMKey:
    return claim.namespace, claim.vm


def _running(network: Network, claims: Sequence[IPAMClaim]) -> dict[int, Workload]:
    """Return the workload of each claim's VM, by the claim's id."""
    names = {claim.vm for claim in claims if claim.vm}
    rows = Workload.objects.filter(network=network, kind=WorkloadKind.VMI, name__in=names)
    workloads_by_vm = {(row.namespace, row.name): row for row in rows.order_by("-since", "-pk")}
    running = {}
    for claim in claims:
        row = workloads_by_vm.get(_vm_key(claim))
        if row is not None and claim.vm_uid in {"", row.uid, row.vm_uid}:
            running[claim.pk] = row
    return running


def _macs(
    network: Network, claims: Sequence[IPAMClaim], running: dict[int, Workload]
) -> dict[int, frozenset[str]]:
    """Return the MACs of the claims' VMs: as requested, else as running and as the VM object has them."""
    names = {claim.vm for claim in claims if claim.vm and not claim.mac}
    macs_by_vm: dict[VMKey, tuple[str, set[str]]] = {}
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
    for claim in claims:
        claim_macs = {claim.mac} if claim.mac else set()
        if not claim_macs:
            if claim.pk in running and running[claim.pk].mac:
                claim_macs.add(running[claim.pk].mac)
            uid, vm_macs = macs_by_vm.get(_vm_key(claim), ("", set()))
            claim_macs |= vm_macs if claim.vm_uid in {"", uid} else set()
        macs[claim.pk] = frozenset(mac for mac in claim_macs if mac)
    return macs


def _entries(
    network: Network, claims: Sequence[IPAMClaim], macs: dict[int, frozenset[str]]
) -> dict[int, Entry]:
    """Return the entry of each claim, by its VM's MAC, else by its VM; the first of several."""
    all_macs = {mac for vm_macs in macs.values() for mac in vm_macs}
    names = {claim.vm for claim in claims if claim.vm}
    rows = Entry.objects.filter(Q(mac__in=all_macs) | Q(vm__in=names), ippool__network=network)
    by_mac: dict[str, Entry] = {}
    by_vm: dict[VMKey, Entry] = {}
    for row in rows.order_by("-pk"):
        by_mac[str(row.mac)] = row
        if row.vm:
            by_vm[row.namespace, row.vm] = row
    entries = {}
    for claim in claims:
        vm_entry = by_vm.get(_vm_key(claim)) or by_vm.get(("", claim.vm))
        entries_for_mac = [by_mac[mac] for mac in sorted(macs[claim.pk]) if mac in by_mac]
        entries_for_vm = [entry for entry in entries_for_mac if entry.vm in {"", claim.vm}]
        if entries_for_vm or vm_entry:
            entries[claim.pk] = entries_for_vm[0] if entries_for_vm else vm_entry
    return {key: entry for key, entry in entries.items() if entry is not None and entry.ips}


def _requests(
    network: Network, claims: Sequence[IPAMClaim], macs: dict[int, frozenset[str]]
) -> dict[int, list[str]]:
    """Return the addresses that another claim of the same VM requests, for one claim of each VM.

    kubevirt/ipam-extensions creates a claim without a request when the VM is created; an imported claim
    of the VM has another name and the request.
    """
    open_claims = [claim for claim in claims if claim.vm and not claim.ips_requested]
    rows = IPAMClaim.objects.filter(
        network=network, vm__in={claim.vm for claim in open_claims}, gone_at=None
    ).exclude(pk__in=[claim.pk for claim in open_claims])
    requests_by_vm: dict[VMKey, list[IPAMClaim]] = {}
    granted_hosts = set()
    for row in rows.order_by("pk"):
        if row.ips_requested:
            requests_by_vm.setdefault(_vm_key(row), []).append(row)
        else:
            granted_hosts |= {ipamclaim.host(text) for text in row.ips}
    ips_by_claim = {}
    for claim in open_claims:
        vm_requests = requests_by_vm.get(_vm_key(claim), [])
        for row in vm_requests:
            same_vm = row.vm_uid in {"", claim.vm_uid} or not claim.vm_uid
            ips = row.ips or row.ips_requested
            is_free = granted_hosts.isdisjoint(map(ipamclaim.host, ips))
            if (
                same_vm
                and is_free
                and (not row.mac or not macs[claim.pk] or row.mac in macs[claim.pk])
            ):
                ips_by_claim[claim.pk] = list(ips)
                vm_requests.remove(row)
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
    values = {
        "space": network.pool.space_id,
        "addresses": ",".join(requested_hosts),
        "cluster": network.cluster_id,
    }
    return {
        address: _HeldBlock(kind, holder, uid)
        for address, kind, holder, uid in database.rows(_BLOCKS, values, prepare=False)
    }


# An address that is held for another network of the segment is left out if a party there has it.
_BLOCKS = """
    SELECT host(b.cidr), b.holder_kind, b.holder_id, b.holder_uid FROM pools_block b
    WHERE b.space_id = %(space)s AND b.cidr = ANY(string_to_array(%(addresses)s, ',')::cidr[])
      AND (b.state = 'held' OR b.state = 'cooling' AND b.available_from > ipam_clock())
      AND (b.state <> 'held' OR b.holder_kind <> 'segment' OR NOT EXISTS (SELECT FROM claims_indexentry e
          JOIN claims_network m ON m.id = e.network_id
          WHERE m.cluster_id = %(cluster)s AND m.name = b.holder_id AND e.address = host(b.cidr)::inet AND e.holds))
"""
