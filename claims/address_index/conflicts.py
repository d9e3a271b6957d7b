"""Conflicts in the address index: index entries of one network that name the same MAC or address.

Index entries with the same MAC conflict if they are two MAC entries, two claims that are not known to
belong to one VM, or two different VMs or pods. A MAC also conflicts with those of the network's gateway
and management port.

Index entries with the same address conflict if their MACs differ or, where a MAC is unknown, if their
VMs differ. An entry that names an address twice conflicts with itself. An address also conflicts with
the network's own addresses: what OVN-Kubernetes keeps (`claims.core.networks.kept_addresses`), and
reserved ranges of the pool.

Unknown values never conflict: an entry without a VM and a claim without a MAC may be the same machine.
Addresses in reserved subnets do not conflict either, because OVN-Kubernetes reserves these subnets for
VMs that request an address in them; the pages show a note instead.

Localnet networks on one physical network and VLAN are one segment: the index entries of both conflict.

`recheck` updates the flags `duplicate_mac` and `duplicate_ip` of index entries after a change,
`recheck_network` those of a whole network.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from ipaddress import ip_address
from typing import Any

from django.db import transaction
from django.db.models import Count, Exists, OuterRef

from claims.address_index import block_sync
from claims.address_index.block_sync import ChangedKeys
from claims.core.macs import parse_mac
from claims.core.networks import kept_addresses
from claims.core.networks.kept_addresses import KeptSpan
from claims.models import IndexEntry, IPPool, Network
from pools.core import errors
from pools.core.addresses import AddressRange
from pools.models import ReservedRange
from pools.platform import database
from pools.sql import statements


def find_own_spans(network: Network) -> list[KeptSpan]:
    """Return what the network keeps, the most specific first, and ranges reserved in its pool beside these."""
    spans = kept_addresses.kept_spans(network)
    rows = ReservedRange.objects.filter(pool=network.pool_id) if network.pool_id else ()
    ranges = (
        KeptSpan(
            kept_addresses.RESERVED_RANGE, AddressRange(row.first, row.last), row.reason or str(row)
        )
        for row in rows
    )
    return spans + [
        reserved
        for reserved in ranges
        if not any(span.has(reserved.span.first) and span.has(reserved.span.last) for span in spans)
    ]


_UPDATE_OF_KEYS = statements.read("claims/update_duplicates_of_keys")
_OF_NETWORK = statements.read("claims/duplicates_of_network")
_COUNT = statements.read("claims/count_duplicates")


_BATCH = 10_000  # MACs and addresses in one statement
_BULK = 500  # changes of a network before its first analyze
_changes: Counter[int] = Counter()  # changed MACs and addresses by network, in this process
_next: dict[int, int] = {}  # number of changes, by network, after which the table is analyzed again


def recheck(changed_keys: ChangedKeys) -> None:
    """Update the conflict flags of all index entries that name a changed MAC or address."""
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
    networks = list(Network.objects.filter(pk__in=changed_keys.networks).select_related("pool"))
    for network, peer in block_sync.shared_networks(networks):
        macs += [(peer, mac) for mac in sorted(changed_keys.macs.get(network, ()))]
        addresses += [(peer, address) for address in changed_keys.addresses.get(network, ())]
    peer_ids = {pk for pk, _ in (*macs, *addresses)} - {network.pk for network in networks}
    networks += Network.objects.filter(pk__in=peer_ids).select_related("pool")
    own_parameters = _own_parameters(networks)
    _analyze_grown(changed_keys)
    # In batches, so that no statement exceeds the statement timeout of web requests.
    for first in range(0, max(len(macs), len(addresses)), _BATCH):
        batch_macs = macs[first : first + _BATCH]
        batch_addresses = addresses[first : first + _BATCH]
        values = {
            "mac_networks": database.join_values(network for network, _ in batch_macs),
            "macs": database.join_values(mac for _, mac in batch_macs),
            "address_networks": database.join_values(network for network, _ in batch_addresses),
            "addresses": database.join_values(address for _, address in batch_addresses),
            **own_parameters,
        }
        database.fetch(_UPDATE_OF_KEYS, values)
    _count([network.pk for network in networks])


def _analyze_grown(changed_keys: ChangedKeys) -> None:
    """Analyze the table each time the changes of a network have doubled.

    Without statistics of a network the planner would read all its rows for each index entry.
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
    """Update the conflict flags of a whole network. Return the number of corrected index entries."""
    changed = len(_correct_flags(network, write=True))
    _count([network.pk])
    return changed


def wrong_flags(network: Network) -> list[tuple[str | None, str | None, bool, bool]]:
    """Return index entries with wrong flags, as (MAC, address, right MAC flag, right address flag)."""
    return [tuple(row.values()) for row in _correct_flags(network, write=False)]


def _correct_flags(network: Network, *, write: bool) -> list[Mapping[str, Any]]:
    values = {"network": network.pk, "write": write, **_own_parameters([network])}
    return database.fetch(_OF_NETWORK, values)


def has_wrong_counts(network: Network) -> bool:
    """Return True if the duplicate counts stored in the network's IPPool are wrong."""
    return bool(database.rows(_COUNT, {"networks": str(network.pk), "write": False}))


def recheck_all() -> int:
    """Run `recheck_network` for each network with index entries, in one transaction each.

    Return the number of corrected index entries.
    """
    networks = Network.objects.filter(Exists(IndexEntry.objects.filter(network=OuterRef("pk"))))
    corrected = 0
    for network in networks.select_related("pool").iterator(chunk_size=200):
        with transaction.atomic():
            block_sync.lock_pools([network.pk])
            corrected += recheck_network(network)
    return corrected


def _own_parameters(networks: Iterable[Network]) -> dict[str, str]:
    networks = list(networks)
    macs = [(network.pk, mac) for network in networks for mac in kept_addresses.kept_macs(network)]
    own_spans = [
        (network.pk, own_span.span.first, own_span.span.last)
        for network in networks
        for own_span in find_own_spans(network)
        if not own_span.is_note
    ]
    return {
        "own_networks": database.join_values(network for network, _, _ in own_spans),
        "own_firsts": database.join_values(first for _, first, _ in own_spans),
        "own_lasts": database.join_values(last for _, _, last in own_spans),
        "own_mac_networks": database.join_values(network for network, _ in macs),
        "own_macs": database.join_values(mac for _, mac in macs),
    }


def _count(networks: Iterable[int]) -> None:
    database.fetch(_COUNT, {"networks": database.join_values(networks), "write": True})


def entry_duplicates(
    ippool: IPPool, *, limit: int = 50
) -> tuple[list[tuple[str, int]], list[tuple[str, list[str]]]]:
    """Return the duplicates among the MAC entries of an IPPool, for its conditions.

    The result is (MACs with the number of their entries, addresses with the MACs of their entries),
    sorted, at most `limit` of each. Entries of the cluster's object that cannot be used count, too.
    """
    values = {"network": ippool.network_id, "limit": limit}
    macs = [(str(mac), count) for mac, count in database.rows(_MACS, values)]
    ips = [(address, list(entry_macs)) for address, entry_macs in database.rows(_IPS, values)]
    if ippool.problems:
        macs, ips = _with_unusable(ippool, dict(macs), dict(ips))
    return macs[:limit], ips[:limit]


def _with_unusable(
    ippool: IPPool, counts: dict[str, int], macs_by_address: dict[str, list[str]]
) -> tuple[list[tuple[str, int]], list[tuple[str, list[str]]]]:
    """Add to the duplicates those of entries that cannot be used, which the index does not have."""
    unusable = [(problem["mac"], problem.get("hosts", ())) for problem in ippool.problems]
    hosts = {host for _, entry_hosts in unusable for host in entry_hosts}
    rows = IndexEntry.objects.filter(network=ippool.network_id, entry__isnull=False)
    for address, mac in rows.filter(address__in=hosts).values_list("address", "mac"):
        macs_by_address.setdefault(str(address), []).append(str(mac))
    macs = Counter(mac for key, _ in unusable if (mac := _mac_or_none(key)))
    counted = rows.filter(mac__in=list(macs)).values_list("mac")
    for mac, count in counted.annotate(Count("entry", distinct=True)):
        macs[str(mac)] += count
    for key, entry_hosts in unusable:
        for host in entry_hosts:
            macs_by_address.setdefault(host, []).append(_mac_or_none(key) or key)
    counts |= {mac: count for mac, count in macs.items() if count > 1}
    shared = {host: sorted(set(names)) for host, names in macs_by_address.items()}
    return sorted(counts.items()), sorted(
        ((host, names) for host, names in shared.items() if len(names) > 1),
        key=lambda pair: (":" in pair[0], int(ip_address(pair[0]))),
    )


def _mac_or_none(key: str) -> str | None:
    try:
        return parse_mac(key)
    except errors.InvalidInput:
        return None


def count_entry_duplicates(ippool: IPPool) -> tuple[int, int]:
    """Return the numbers of duplicate MACs and duplicate addresses among the MAC entries of an IPPool."""
    values = {"network": ippool.network_id, "limit": None}
    return tuple(len(database.rows(statement, values)) for statement in (_MACS, _IPS))  # type: ignore[return-value]


_MACS = statements.read("claims/entries_with_one_mac")
_IPS = statements.read("claims/entries_with_one_address")
