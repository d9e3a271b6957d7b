"""Block sync: allocates the blocks of a network's pool to the owners of index entries.

An address belongs to the claim that was granted it, else to the workload that runs with it, else to
the MAC entry that names it; of several entries to the oldest. So a MAC entry keeps its address from
being allocated before its VM exists, and a stopped VM keeps its address.

Localnet networks on one physical network and VLAN are one segment and share their addresses. What an entry, a claim, a
workload or another holder has on one of them is held in the pools of the others by the holder `segment <name of the
network>`, so that nobody draws it there; an owner on the network itself takes such a block over. Reserved ranges are
shared by claims/networks/pools.py, duplicates by conflicts.py.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address

from claims.core.networks import udn
from claims.models import Network
from pools.core import holders
from pools.platform import database
from pools.register import block_sync
from pools.register.allocator import window
from pools.register.block_sync import AddressHolder, AddressUse
from pools.sql import statements

SEGMENT = "segment"  # kind of the holder
Name = tuple[str, str]  # kind and id of a holder


@dataclass
class ChangedKeys:
    """MACs and addresses by network id; each address with its former holders."""

    macs: dict[int, set[str]] = field(default_factory=dict)
    addresses: dict[int, dict[str, set[Name]]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.macs or self.addresses)

    def add(
        self, network_id: int, mac: str | None, address: str | None, former: Name | None
    ) -> None:
        """Add the keys of an index entry that is created or deleted; `former` held its address so far."""
        if mac:
            self.macs.setdefault(network_id, set()).add(mac)
        if address:
            formers = self.addresses.setdefault(network_id, {}).setdefault(address, set())
            if former:
                formers.add(former)

    @property
    def networks(self) -> set[int]:
        return {*self.macs, *self.addresses}


def shared_networks(networks: Iterable[Network]) -> list[tuple[int, int]]:
    """Return the pairs of a network and another one of its segment."""
    ids = [network.pk for network in networks if network.topology == udn.LOCALNET]
    return [(pk, peer) for pk, peer in database.rows(_SHARED, {"networks": ids})] if ids else []


_SHARED = """
    SELECT network, claims_shared_networks(network) FROM unnest(%(networks)s::bigint[]) AS network
"""


def with_peers(networks: Sequence[Network]) -> list[Network]:
    """Return the networks that share a segment, with the others of their segments, in the order of their pools."""
    ids = {pk for pair in shared_networks(networks) for pk in pair}
    rows = Network.objects.filter(pk__in=ids, pool__isnull=False) if ids else Network.objects.none()
    return list(rows.select_related("pool").order_by("pool_id"))


def lock_pools(network_ids: Iterable[int]) -> None:
    """Take the locks of the pools of the networks and their segments.

    Call this before a row of networks, IPPools, entries, claims, workloads or the address index is locked or written:
    all who write them take these locks, and would else wait for each other.
    """
    networks = list(Network.objects.filter(pk__in={*network_ids}, pool__isnull=False))
    pool_ids = {network.pool_id for network in (*networks, *with_peers(networks))}
    window.lock(*filter(None, pool_ids))


def holder_names(network: Network) -> set[tuple[str, str]]:
    """Return the holders of addresses that the network shares; its own owners take them over."""
    peers = [peer for _, peer in shared_networks([network])]
    names = Network.objects.filter(pk__in=peers).values_list("name", flat=True) if peers else ()
    return {(SEGMENT, name) for name in names}


def sync_segment(network: Network) -> None:
    """Hold what other networks of the segment have in the network's pool, and release what they no longer have."""
    if network.pool is None or network.topology != udn.LOCALNET:
        return
    rows = database.rows(_DIFFERENCES, {"network": network.pk, "pool": network.pool.pk})
    block_sync.apply_uses(
        network.pool,
        {
            ip_address(address): AddressUse(
                AddressHolder(SEGMENT, name) if name else None,
                [(SEGMENT, former)] if former else (),
            )
            for address, name, former in rows
        },
    )


_DIFFERENCES = statements.read("claims/segment_differences")


VM, MAC, POD = "vm", "mac", "pod"


def holder_name(namespace: str, vm: str, mac: str | None) -> Name:
    """Return the kind and id of an address holder: the VM, or the MAC address if the VM is unknown."""
    if vm:
        return VM, full_name(namespace, vm) if namespace else vm
    return MAC, mac or ""


def full_name(namespace: str, name: str) -> str:
    """Return `namespace/name` as a holder id; a longer one than 253 characters ends in its digest."""
    return holders.shorten_identifier(f"{namespace}/{name}")


def sync_blocks(changed_keys: ChangedKeys) -> None:
    """Allocate or release the blocks of all changed addresses according to the address index, under `lock_pools`."""
    rows = Network.objects.filter(pk__in=changed_keys.addresses, pool__isnull=False)
    networks = list(rows.select_related("pool").order_by("pool_id"))
    for network in networks:
        _sync(network, changed_keys.addresses[network.pk])
    for network in with_peers(networks):
        sync_segment(network)


def sync_all(network: Network) -> None:
    """Sync the blocks of every address in the index of a network, after it got a new pool."""
    if network.pool is None:
        return
    rows = database.rows(_ALL, [network.pk])
    _sync(network, {address: set() for (address,) in rows})
    sync_segment(network)


_ALL = """
    SELECT DISTINCT host(address) FROM claims_indexentry
    WHERE network_id = %s AND address IS NOT NULL
"""


def _sync(network: Network, formers: dict[str, set[Name]]) -> None:
    pool = network.pool
    if pool is None or not formers:
        return
    claimants = _claimants(network.pk, formers)
    shared = holder_names(network)
    uses = {}
    for address, names in formers.items():
        # The first claimant in order of precedence holds the address; all others must release it.
        contenders = claimants.get(address, [])
        yields = {*names, *shared, *(contender.name for contender in contenders)}
        uses[ip_address(address)] = AddressUse(contenders[0] if contenders else None, yields)
    block_sync.apply_uses(pool, uses)


def _claimants(network_id: int, addresses: Iterable[str]) -> dict[str, list[AddressHolder]]:
    holders_by_address: dict[str, list[AddressHolder]] = {}
    for address, kind, namespace, vm, mac, uid in database.rows(
        _CLAIMANTS,
        {"network": network_id, "addresses": database.join_values(addresses)},
        prepare=False,
    ):
        if kind == POD:
            holder = AddressHolder(POD, full_name(namespace, vm), uid)
        else:
            holder = AddressHolder(*holder_name(namespace, vm, mac and str(mac)), uid)
        if holder.id:
            holders_by_address.setdefault(address, []).append(holder)
    return holders_by_address


# Ordered by precedence: claims, then workloads, then MAC entries; within a kind the oldest first.
_CLAIMANTS = statements.read("claims/claimants_of_addresses")
