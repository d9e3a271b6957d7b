"""The flags of duplicates: places of one network that contradict each other, or what the network itself uses.

A MAC address is a duplicate when two entries have it, two claims that are not known to be one VM's, or
two that are known to be different VMs or pods, and when it is that of the network's gateway. An address is one when different MACs have it, when it stands twice in one entry, or, where a MAC
is not known, when different VMs have it. What is not known contradicts nothing: an entry without a VM
and a claim without a MAC may well be the same machine. An address is one, too, when the network uses
it itself: a gateway, an infrastructure subnet, a reserved range of its pool. Reserved subnets are for
those who ask for an address of them (OVN-Kubernetes), which is said, and is no duplicate.

The flags of `Place` are kept by `recheck` for what a change touched; `full` judges a whole network.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from django.db.models import Exists, OuterRef

from claims.address_index import own_addresses
from claims.address_index.changed_keys import ChangedKeys
from claims.models import IPPool, Network, Place
from pools.platform import database
from pools.sql import statements

# p and q name the same MAC.
SAME_MAC_CONTRADICTS = """
    CASE WHEN p.entry_id IS NOT NULL AND q.entry_id IS NOT NULL THEN p.entry_id <> q.entry_id
         WHEN p.claim_id = q.claim_id THEN false
         WHEN p.claim_id IS NOT NULL AND q.claim_id IS NOT NULL
              THEN p.vm = '' OR p.vm <> q.vm OR p.namespace <> q.namespace
         ELSE p.vm <> '' AND q.vm <> '' AND (p.vm <> q.vm
              OR p.namespace <> '' AND q.namespace <> '' AND p.namespace <> q.namespace) END
"""
# p and q name the same address.
SAME_ADDRESS_CONTRADICTS = """
    CASE WHEN p.entry_id IS NOT NULL AND p.entry_id = q.entry_id THEN true
         WHEN p.claim_id = q.claim_id OR p.workload_id = q.workload_id THEN false
         WHEN p.mac IS NOT NULL AND q.mac IS NOT NULL THEN p.mac <> q.mac
         ELSE p.vm <> '' AND q.vm <> '' AND (p.vm <> q.vm
              OR p.namespace <> '' AND q.namespace <> '' AND p.namespace <> q.namespace) END
"""

# How many candidates there are PostgreSQL guesses thirty times too high; OFFSET 0 and the array keep it
# to the indexes all the same, where it would read the whole table for each part.
_JUDGED = f"""
    own AS (
        SELECT * FROM unnest(string_to_array(%(own_networks)s, ',')::bigint[],
                             string_to_array(%(own_firsts)s, ',')::inet[],
                             string_to_array(%(own_lasts)s, ',')::inet[])
            AS o(network_id, first, last)),
    own_macs AS (
        SELECT * FROM unnest(string_to_array(%(own_mac_networks)s, ',')::bigint[],
                             string_to_array(%(own_macs)s, ',')::macaddr[]) AS o(network_id, mac)),
    judged AS MATERIALIZED (
        SELECT p.id, (p.duplicate_mac, p.duplicate_ip) AS before,
            p.mac IS NOT NULL AND (EXISTS (
                SELECT FROM claims_place q
                WHERE q.network_id = p.network_id AND q.mac = p.mac AND q.id <> p.id
                  AND {SAME_MAC_CONTRADICTS})
              OR EXISTS (
                SELECT FROM own_macs o WHERE o.network_id = p.network_id AND o.mac = p.mac))
              AS duplicate_mac,
            p.address IS NOT NULL AND (EXISTS (
                SELECT FROM claims_place q
                WHERE q.network_id = p.network_id AND q.address = p.address AND q.id <> p.id
                  AND {SAME_ADDRESS_CONTRADICTS})
              OR EXISTS (
                SELECT FROM own WHERE own.network_id = p.network_id
                  AND p.address BETWEEN own.first AND own.last)) AS duplicate_ip
        FROM candidates CROSS JOIN LATERAL (
            SELECT * FROM claims_place WHERE id = candidates.id OFFSET 0) p),
    changed AS MATERIALIZED (
        SELECT id, duplicate_mac, duplicate_ip FROM judged
        WHERE before IS DISTINCT FROM (duplicate_mac, duplicate_ip))
"""  # noqa: S608  # no value is formatted in
_WRITTEN = """
    UPDATE claims_place p
    SET duplicate_mac = changed.duplicate_mac, duplicate_ip = changed.duplicate_ip
    FROM changed
    WHERE p.id = changed.id AND p.id = ANY (ARRAY(SELECT id FROM changed))
    RETURNING p.id
"""
_TOLD = """
    SELECT p.mac::text, host(p.address), changed.duplicate_mac, changed.duplicate_ip
    FROM changed JOIN claims_place p ON p.id = changed.id ORDER BY p.id
"""

# Both halves by their indexes, also while the statistics know nothing of a bulk of new rows.
_TOUCHED = f"""
    WITH candidates AS MATERIALIZED (
        SELECT p.id FROM unnest(string_to_array(%(mac_networks)s, ',')::bigint[],
                                string_to_array(%(macs)s, ',')::macaddr[]) AS t(network_id, mac)
        CROSS JOIN LATERAL (SELECT id FROM claims_place
            WHERE network_id = t.network_id AND mac = t.mac) p
        UNION
        SELECT p.id FROM unnest(string_to_array(%(address_networks)s, ',')::bigint[],
                                string_to_array(%(addresses)s, ',')::inet[]) AS t(network_id, address)
        CROSS JOIN LATERAL (SELECT id FROM claims_place
            WHERE network_id = t.network_id AND address = t.address) p),
    {_JUDGED} {_WRITTEN}
"""  # noqa: S608

# Only values that stand more than once, and what was a duplicate so far, need a second look.
_WHOLE = f"""
    WITH macs AS MATERIALIZED (
        SELECT mac FROM claims_place WHERE network_id = %(network)s AND mac IS NOT NULL
        GROUP BY mac HAVING count(*) > 1),
    addresses AS MATERIALIZED (
        SELECT address FROM claims_place WHERE network_id = %(network)s AND address IS NOT NULL
        GROUP BY address HAVING count(*) > 1),
    candidates AS MATERIALIZED (
        SELECT p.id FROM macs CROSS JOIN LATERAL (SELECT id FROM claims_place
            WHERE network_id = %(network)s AND mac = macs.mac OFFSET 0) p
        UNION
        SELECT p.id FROM addresses CROSS JOIN LATERAL (SELECT id FROM claims_place
            WHERE network_id = %(network)s AND address = addresses.address OFFSET 0) p
        UNION
        SELECT p.id FROM claims_place p
        WHERE p.network_id = %(network)s AND (p.duplicate_mac OR p.duplicate_ip)
        UNION
        SELECT p.id FROM unnest(string_to_array(%(own_firsts)s, ',')::inet[],
                                string_to_array(%(own_lasts)s, ',')::inet[]) AS o(first, last)
        CROSS JOIN LATERAL (SELECT id FROM claims_place
            WHERE network_id = %(network)s AND address BETWEEN o.first AND o.last) p
        UNION
        SELECT p.id FROM unnest(string_to_array(%(own_macs)s, ',')::macaddr[]) AS o(mac)
        CROSS JOIN LATERAL (SELECT id FROM claims_place
            WHERE network_id = %(network)s AND mac = o.mac) p),
    {_JUDGED}
"""  # noqa: S608


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
        database.fetch(_TOUCHED, values)
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
        database.analyze("claims_place")


def recheck_network(network: Network) -> int:
    """Judge every place of a network; how many flags were wrong."""
    values = {"network": network.pk, **_own_parameters([network])}
    changed = len(database.fetch(_WHOLE + _WRITTEN, values))
    _count([network.pk])
    return changed


def wrong_flags(network: Network) -> list[tuple[str | None, str | None, bool, bool]]:
    """The places of a network whose flags are wrong: MAC, address, and the flags that are right."""
    values = {"network": network.pk, **_own_parameters([network])}
    return [tuple(row.values()) for row in database.fetch(_WHOLE + _TOLD, values)]


def has_wrong_counts(network: Network) -> bool:
    """Whether its IPPool says other numbers of duplicates than there are."""
    return bool(database.rows(_MISCOUNTED, {"networks": str(network.pk)}))


def recheck_all() -> int:
    """`full` for all networks of which a place speaks, each in a transaction of its own."""
    networks = Network.objects.filter(Exists(Place.objects.filter(network=OuterRef("pk"))))
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
    database.fetch(_COUNT, {"networks": database.joined(networks)})


_COUNTED = """
    WITH counted AS (
        SELECT i.id, count(DISTINCT p.mac) FILTER (WHERE p.duplicate_mac) AS macs,
            count(DISTINCT p.address) FILTER (WHERE p.duplicate_ip) AS ips
        FROM claims_ippool i LEFT JOIN claims_place p
            ON p.network_id = i.network_id AND p.entry_id IS NOT NULL
            AND (p.duplicate_mac OR p.duplicate_ip)
        WHERE i.network_id = ANY(string_to_array(%(networks)s, ',')::bigint[])
        GROUP BY i.id)
"""
_COUNT = f"""{_COUNTED}
    UPDATE claims_ippool i SET duplicate_macs = c.macs, duplicate_ips = c.ips
    FROM counted c
    WHERE c.id = i.id AND (i.duplicate_macs, i.duplicate_ips) IS DISTINCT FROM (c.macs, c.ips)
    RETURNING i.id
"""  # noqa: S608
_MISCOUNTED = f"""{_COUNTED}
    SELECT i.id FROM claims_ippool i JOIN counted c ON c.id = i.id
    WHERE (i.duplicate_macs, i.duplicate_ips) IS DISTINCT FROM (c.macs, c.ips)
"""  # noqa: S608


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
