"""Block sync: allocates the blocks of a network's pool to the owners of index entries.

An address belongs to the claim that was granted it, else to the workload that runs with it, else to
the MAC entry that names it; of several entries to the oldest. So a MAC entry keeps its address from
being allocated before its VM exists, and a stopped VM keeps its address. Localnet networks of one segment hold each
other's addresses (claims/address_index/segments.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import ip_address

from claims.address_index import segments
from claims.address_index.conflicts import ChangedKeys, Name
from claims.models import Network
from pools.core import holders
from pools.platform import database
from pools.register import block_sync
from pools.register.block_sync import AddressHolder, AddressUse
from pools.sql import statements

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
    """Allocate or release the blocks of all changed addresses according to the address index."""
    rows = Network.objects.filter(pk__in=changed_keys.addresses, pool__isnull=False)
    networks = list(rows.select_related("pool").order_by("pool_id"))
    members = segments.lock_pools(networks) if segments.shared_networks(networks) else []
    for network in networks:
        _sync(network, changed_keys.addresses[network.pk])
    for network in members:
        segments.sync_blocks(network)


def sync_all(network: Network) -> None:
    """Sync the blocks of every address in the index of a network, after it got a new pool."""
    if network.pool is None:
        return
    rows = database.rows(_ALL, [network.pk])
    _sync(network, {address: set() for (address,) in rows})
    segments.sync_blocks(network)


_ALL = """
    SELECT DISTINCT host(address) FROM claims_indexentry
    WHERE network_id = %s AND address IS NOT NULL
"""


def _sync(network: Network, formers: dict[str, set[Name]]) -> None:
    pool = network.pool
    if pool is None or not formers:
        return
    claimants = _claimants(network.pk, formers)
    shared = segments.holder_names(network)
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
