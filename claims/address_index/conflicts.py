"""The flags of duplicates: places of one network that contradict each other, or what the network itself uses.

A MAC address is a duplicate when two entries have it, two claims that are not known to be one VM's, or
two that are known to be different VMs or pods, and when it is that of the network's gateway. An address is one when different MACs have it, when it stands twice in one entry, or, where a MAC
is not known, when different VMs have it. What is not known contradicts nothing: an entry without a VM
and a claim without a MAC may well be the same machine. An address is one, too, when the network uses
it itself: a gateway, an infrastructure subnet, a reserved range of its pool. Reserved subnets are for
those who ask for an address of them (OVN-Kubernetes), which is said, and is no duplicate.

The flags of `IndexEntry` are kept by `recheck` for what a change touched; `full` judges a whole network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any

from django.db.models import Exists, OuterRef

from claims.address_index import own_addresses
from claims.address_index.changed_keys import ChangedKeys
from claims.models import IndexEntry, IPPool, Network
from pools.platform import database
from pools.sql import statements

_UPDATE_OF_KEYS = statements.read("claims/update_duplicates_of_keys")
_OF_NETWORK = statements.read("claims/duplicates_of_network")
_COUNT = statements.read("claims/count_duplicates")


_BATCH = 10_000  # MACs and addresses
_BULK = 500
_changes: Counter[int] = Counter()  # of MACs and addresses by network, in this process
_next: dict[int, int] = {}  # after how many of them the planner is told again


def recheck(changed_keys: ChangedKeys) -> None:
    """Judge again all places that name a MAC or an address that a change touched."""
    macs = [
        (network, mac)
        for network, network_macs in changed_keys.macs.items()
        for mac in sorted(network_macs)
    ]
    addresses = [
        (network, address)
        for network, network_addresses in changed_keys.addresses.items()
        for address in network_addresses
    ]
    own_parameters = _own_parameters(
        Network.objects.filter(pk__in=changed_keys.networks).select_related("pool")
    )
    _analyze_grown(changed_keys)
    # No statement so long that the web's time-out for statements ends it.
    for first in range(0, max(len(macs), len(addresses)), _BATCH):
        some_macs = macs[first : first + _BATCH]
        some_addresses = addresses[first : first + _BATCH]
        values = {
            "mac_networks": database.joined(network for network, _ in some_macs),
            "macs": database.joined(mac for _, mac in some_macs),
            "address_networks": database.joined(network for network, _ in some_addresses),
            "addresses": database.joined(address for _, address in some_addresses),
            **own_parameters,
        }
        database.fetch(_UPDATE_OF_KEYS, values)
    _count(changed_keys.networks)


def _analyze_grown(changed_keys: ChangedKeys) -> None:
    """Of a network that has just grown the planner may know nothing: it would read all of it for each
    place, by the index of the network alone. Each time that it doubles it is told.
    """
    stale = False
    for network in changed_keys.networks:
        changes = len(changed_keys.macs.get(network, ())) + len(
            changed_keys.addresses.get(network, ())
        )
        _changes[network] += changes
        if _changes[network] >= _next.get(network, _BULK):
            _next[network] = 2 * _changes[network]
            stale = True
    if stale:
        database.analyze("claims_indexentry")


def recheck_network(network: Network) -> int:
    """Judge every place of a network; how many flags were wrong."""
    changed = len(_correct_flags(network, write=True))
    _count([network.pk])
    return changed


def wrong_flags(network: Network) -> list[tuple[str | None, str | None, bool, bool]]:
    """The places of a network whose flags are wrong: MAC, address, and the flags that are right."""
    return [tuple(row.values()) for row in _correct_flags(network, write=False)]


def _correct_flags(network: Network, *, write: bool) -> list[Mapping[str, Any]]:
    values = {"network": network.pk, "write": write, **_own_parameters([network])}
    return database.fetch(_OF_NETWORK, values)


def has_wrong_counts(network: Network) -> bool:
    """Whether its IPPool says other numbers of duplicates than there are."""
    return bool(database.rows(_COUNT, {"networks": str(network.pk), "write": False}))


def recheck_all() -> int:
    """`full` for all networks of which a place speaks, each in a transaction of its own."""
    networks = Network.objects.filter(Exists(IndexEntry.objects.filter(network=OuterRef("pk"))))
    return sum(
        recheck_network(network)
        for network in networks.select_related("pool").iterator(chunk_size=200)
    )


def _own_parameters(networks: Iterable[Network]) -> dict[str, str]:
    networks = list(networks)
    macs = [(network.pk, mac) for network in networks for mac in own_addresses.macs(network)]
    own_spans = [
        (network.pk, own_span.span.first, own_span.span.last)
        for network in networks
        for own_span in own_addresses.own_spans(network)
        if not own_span.note
    ]
    return {
        "own_networks": database.joined(network for network, _, _ in own_spans),
        "own_firsts": database.joined(first for _, first, _ in own_spans),
        "own_lasts": database.joined(last for _, _, last in own_spans),
        "own_mac_networks": database.joined(network for network, _ in macs),
        "own_macs": database.joined(mac for _, mac in macs),
    }


def _count(networks: Iterable[int]) -> None:
    database.fetch(_COUNT, {"networks": database.joined(networks), "write": True})


def entry_duplicates(
    ippool: IPPool, *, limit: int = 50
) -> tuple[list[tuple[str, int]], list[tuple[str, list[str]]]]:
    """The duplicates among the entries alone, as the conditions of an IPPool tell them.

    MACs with the number of their entries, addresses with the MACs that have them; at most `limit` of
    each, in order.
    """
    values = {"network": ippool.network_id, "limit": limit}
    macs = [(str(mac), count) for mac, count in database.rows(_MACS, values)]
    ips = [(address, list(entry_macs)) for address, entry_macs in database.rows(_IPS, values)]
    return macs, ips


def count_entry_duplicates(ippool: IPPool) -> tuple[int, int]:
    """How many MACs and how many addresses are duplicates among the entries alone."""
    values = {"network": ippool.network_id, "limit": None}
    return tuple(len(database.rows(statement, values)) for statement in (_MACS, _IPS))  # type: ignore[return-value]


_MACS = statements.read("claims/entries_with_one_mac")
_IPS = statements.read("claims/entries_with_one_address")
