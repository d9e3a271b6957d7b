"""Shared segments: localnet networks on one physical network and VLAN, which share their addresses.

What an entry, a claim, a workload or another holder has on one of them is held in the pools of the others by
the holder `segment <name of the network>`, so that nobody draws it there; an owner on the network itself takes
such a block over. Reserved ranges are shared by claims/networks/pools.py, duplicates by conflicts.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from ipaddress import ip_address

from claims.core.networks import udn
from claims.models import Network
from pools.platform import database
from pools.register import block_sync
from pools.register.allocator import window
from pools.register.block_sync import AddressHolder, AddressUse
from pools.sql import statements

SEGMENT = "segment"  # kind of the holder


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


def lock_pools(networks: Sequence[Network]) -> list[Network]:
    """Take the locks of the networks' pools and of those of their segments; return `with_peers`."""
    members = with_peers(networks)
    pool_ids = {network.pool_id for network in (*networks, *members) if network.pool_id}
    for pool_id in sorted(pool_ids):
        window.lock(pool_id)
    return members


def holder_names(network: Network) -> set[tuple[str, str]]:
    """Return the holders of addresses that the network shares; its own owners take them over."""
    peers = [peer for _, peer in shared_networks([network])]
    names = Network.objects.filter(pk__in=peers).values_list("name", flat=True) if peers else ()
    return {(SEGMENT, name) for name in names}


def sync_blocks(network: Network) -> None:
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
