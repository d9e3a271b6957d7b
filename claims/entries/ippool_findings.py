"""What people should know of a cluster's IPPools."""

from __future__ import annotations

from collections.abc import Iterator

from claims.address_index import conflicts
from claims.core import ippool
from claims.entries import ippool_writes
from claims.models import IPPool
from claims.models.networks import Kind
from pools.clusters.reconcile.handler import Found, Pass
from pools.models import ObservedObject
from pools.models.observed import Severity
from pools.platform import database

KIND = ippool.KIND


def of(pass_: Pass) -> Iterator[Found]:
    """Duplicates, networks that nobody saw, objects that are gone or not in the register."""
    names = set()
    rows = IPPool.objects.filter(cluster=pass_.cluster).select_related("network")
    for one in rows.order_by("name"):
        names.add(one.name)
        yield from _standing(one)
    for name, count, examples in database.rows(_OUTSIDE, [pass_.cluster.pk]):
        message = (
            f"{_count(count, 'address', 'addresses')} of entries of the IPPool {name} "
            f"{'is' if count == 1 else 'are'} outside of the network's subnets, such as {examples[0]}."
        )
        yield Found("ippool_outside_network", name, message, details={"entries": examples})
    objects = ObservedObject.objects.filter(
        cluster=pass_.cluster, kind=KIND, problem_code="", missed_at=None
    ).exclude(name__in=names)
    for row in objects.order_by("name"):
        if ippool_writes.ours(row.manifest):
            message = (
                f"The register has no IPPool {row.name}: it was deleted here, or forgotten. Delete the"
                " object, or adopt it."
            )
            yield Found("ippool_not_in_register", row.name, message)


# Written before the network, or its subnets, were known: what is written later is refused.
_OUTSIDE = """
    SELECT i.name, count(*), (array_agg(e.mac::text || ' ' || host(p.address) ORDER BY p.address))[1:20]
    FROM claims_ippool i JOIN claims_network n ON n.id = i.network_id
    JOIN claims_entry e ON e.ippool_id = i.id JOIN claims_place p ON p.entry_id = e.id
    WHERE i.cluster_id = %s AND n.pool_id IS NOT NULL AND p.address IS NOT NULL
      AND NOT EXISTS (SELECT FROM pools_poolcidr k
        WHERE k.pool_id = n.pool_id AND p.address <<= k.cidr::inet)
    GROUP BY i.id ORDER BY i.name
"""


def _standing(one: IPPool) -> Iterator[Found]:
    if one.duplicate_macs or one.duplicate_ips:
        yield from _duplicates(one)
    if one.problems:
        message = (
            f"{_count(len(one.problems), 'entry', 'entries')} of the IPPool {one.name} cannot be"
            f" used, such as {one.problems[0]['mac']}: {one.problems[0]['message']}"
        )
        yield Found(
            "ippool_unusable_entries", one.name, message, details={"entries": one.problems[:20]}
        )
    if one.network.kind == Kind.UNKNOWN:
        message = (
            f"The IPPool {one.name} names the logical network {one.network.name}, which the cluster"
            " has not: no network attachment definition has this name."
        )
        yield Found("network_unknown", one.name, message)
    if one.gone_at is not None:
        message = (
            f"The object of the IPPool {one.name} is deleted. Its entries still keep their addresses;"
            " delete it here, or make it there again."
        )
        yield Found("ippool_gone", one.name, message, Severity.WARNING)


def _duplicates(one: IPPool) -> Iterator[Found]:
    """Those that its conditions tell of, and entries that contradict what is no entry."""
    macs, ips = conflicts.among_entries(one)
    if macs or ips:
        message = f"Entries of the IPPool {one.name} contradict each other: {_values(macs, ips)}."
        yield Found("ippool_duplicates", one.name, message, details={"macs": macs, "ips": ips})
    macs, ips = one.duplicate_macs - macs, one.duplicate_ips - ips
    if macs > 0 or ips > 0:
        message = (
            f"Entries of the IPPool {one.name} contradict IPAMClaims, what runs, or what the network"
            f" keeps for itself: {_values(macs, ips)}. Its page names them."
        )
        yield Found("ippool_conflicts", one.name, message, details={"macs": macs, "ips": ips})


def _values(macs: int, ips: int) -> str:
    counted = ((macs, "MAC address"), (ips, "IP address"))
    return ", ".join(_count(count, word) for count, word in counted if count > 0)


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 'es'}"
