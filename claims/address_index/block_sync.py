"""The blocks of a network's pool, kept with what entries, claims and workloads say of its addresses.

An address belongs to the claim that was granted it, else to the workload that runs with it, else to
the entry that provisions it; of several entries to the first. So an entry keeps its address from
being handed out before its VM exists, and a VM keeps it while it is stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from ipaddress import ip_address

from claims.address_index.changed_keys import ChangedKeys, Name
from claims.models import Network
from pools.models import Block
from pools.platform import database
from pools.register import block_sync
from pools.register.block_sync import AddressHolder, AddressUse
from pools.sql import statements

VM, MAC, POD = "vm", "mac", "pod"
LONGEST = Block._meta.get_field("holder_id").max_length or 0


def holder_name(namespace: str, vm: str, mac: str | None) -> Name:
    """Kind and id of who has an address: the VM, or the MAC address of one that is not known."""
    if vm:
        return VM, full_name(namespace, vm) if namespace else vm
    return MAC, mac or ""


def full_name(namespace: str, name: str) -> str:
    """`namespace/name` as a holder's id; what is longer than one may be (253) ends in its digest."""
    whole = f"{namespace}/{name}"
    if len(whole) <= LONGEST:
        return whole
    digest = hashlib.sha256(whole.encode()).hexdigest()[:16]
    return f"{whole[: LONGEST - len(digest) - 1]}~{digest}"


def sync_blocks(changed_keys: ChangedKeys) -> None:
    """Bring the blocks of all addresses that were touched to what the places say now."""
    networks = Network.objects.filter(pk__in=changed_keys.addresses, pool__isnull=False)
    for network in networks.select_related("pool").order_by("pool_id"):
        _sync(network, changed_keys.addresses[network.pk])


def sync_all(network: Network) -> None:
    """The same for every address that a place names; for a network whose pool is new."""
    if network.pool is None:
        return
    rows = database.rows(_ALL, [network.pk])
    _sync(network, {address: set() for (address,) in rows})


_ALL = """
    SELECT DISTINCT host(address) FROM claims_indexentry
    WHERE network_id = %s AND address IS NOT NULL
"""


def _sync(network: Network, formers: dict[str, set[Name]]) -> None:
    pool = network.pool
    if pool is None or not formers:
        return
    claimants = _claimants(network.pk, formers)
    uses = {}
    for address, names in formers.items():
        # Who comes first in precedence has it; all others who name it must let it go.
        contenders = claimants.get(address, [])
        yields = {*names, *(contender.name for contender in contenders)}
        uses[ip_address(address)] = AddressUse(contenders[0] if contenders else None, yields)
    block_sync.apply_uses(pool, uses)


def _claimants(network_id: int, addresses: Iterable[str]) -> dict[str, list[AddressHolder]]:
    holders_by_address: dict[str, list[AddressHolder]] = {}
    for address, kind, namespace, vm, mac, uid in database.rows(
        _CLAIMANTS, {"network": network_id, "addresses": database.joined(addresses)}, prepare=False
    ):
        if kind == POD:
            holder = AddressHolder(POD, full_name(namespace, vm), uid)
        else:
            holder = AddressHolder(*holder_name(namespace, vm, mac and str(mac)), uid)
        if holder.id:
            holders_by_address.setdefault(address, []).append(holder)
    return holders_by_address


# Claims first, then what runs, then entries; within a kind the one that was here first.
_CLAIMANTS = statements.read("claims/claimants_of_addresses")
