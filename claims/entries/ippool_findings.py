"""Findings about the IPPools of a cluster."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from claims.address_index import conflicts
from claims.core import ippool
from claims.entries import ippool_writes
from claims.models import IPPool
from claims.models.networks import NetworkKind
from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.models import ObservedObject
from pools.models.observed import Severity
from pools.platform import database
from pools.sql import statements

KIND = ippool.KIND
T = TypeVar("T")


def cluster_findings(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Yield duplicates, unknown networks, deleted objects, and objects that are not in the register."""
    values = {"cluster": context.cluster.pk}
    ippools = IPPool.objects.filter(cluster=context.cluster).select_related("network")
    objects = ObservedObject.objects.filter(
        cluster=context.cluster, kind=KIND, problem_code="", missed_at=None
    ).exclude(name__in=ippools.values("name"))

    def find_each(
        rows: Iterable[T], find: Callable[[T], Iterator[ReconcileFinding]]
    ) -> Iterator[ReconcileFinding]:
        return ingest.find_each(context, KIND, rows, find, name=_name)

    yield from find_each(ippools.order_by("name"), _row_findings)
    yield from find_each(database.rows(_OUTSIDE, values), _outside_network)
    yield from find_each(database.rows(_ONE_PER_FAMILY, values), _one_per_family)
    yield from find_each(ippool_writes.second_ippools(context).defer("manifest"), _second)
    yield from find_each(objects.order_by("name"), _not_in_register)


def _name(row: Any) -> str:
    name: str = row[0] if isinstance(row, tuple) else row.name
    return name


def _outside_network(row: tuple[Any, ...]) -> Iterator[ReconcileFinding]:
    name, count, examples = row
    message = (
        f"{_count(count, 'address', 'addresses')} of entries of the IPPool {name} "
        f"{'is' if count == 1 else 'are'} outside of the network's subnets, for example {examples[0]}."
    )
    yield ReconcileFinding("ippool_outside_network", name, message, details={"entries": examples})


def _one_per_family(row: tuple[Any, ...]) -> Iterator[ReconcileFinding]:
    name, count, examples = row
    message = (
        f"{_count(count, 'entry', 'entries')} of the IPPool {name} {'has' if count == 1 else 'have'} several"
        f" addresses of one family, for example {examples[0]}: OVN-Kubernetes refuses such a VM."
    )
    yield ReconcileFinding("ippool_one_per_family", name, message, details={"entries": examples})


def _second(row: ObservedObject) -> Iterator[ReconcileFinding]:
    message = f"The IPPool {row.name} is left out. {row.problem}"
    yield ReconcileFinding(ippool_writes.SECOND, row.name, message, Severity.ERROR)


def _not_in_register(row: ObservedObject) -> Iterator[ReconcileFinding]:
    if ippool_writes.has_register_fields(row.manifest):
        message = (
            f"The register has no IPPool {row.name}: it was deleted here, or lost by a restore."
            " Delete the object, or adopt it."
        )
        yield ReconcileFinding("ippool_not_in_register", row.name, message)


# Such entries were created before the subnets of the network were known; later ones are refused.
_OUTSIDE = statements.read("claims/entries_outside_subnets")
# Such entries come from the cluster's object, or are older than their refusal.
_ONE_PER_FAMILY = statements.read("claims/entries_with_several_of_a_family")


def _row_findings(ippool_row: IPPool) -> Iterator[ReconcileFinding]:
    if ippool_row.duplicate_macs or ippool_row.duplicate_ips:
        yield from _duplicates(ippool_row)
    if ippool_row.problems:
        message = (
            f"{_count(len(ippool_row.problems), 'entry', 'entries')} of the IPPool {ippool_row.name} cannot be"
            f" used, for example {ippool_row.problems[0]['mac']}: {ippool_row.problems[0]['message']}"
        )
        yield ReconcileFinding(
            "ippool_unusable_entries",
            ippool_row.name,
            message,
            details={"entries": ippool_row.problems[:20]},
        )
    if ippool_row.network.kind == NetworkKind.UNKNOWN:
        message = (
            f"The IPPool {ippool_row.name} names the logical network {ippool_row.network.name}, which the cluster"
            " does not have: no network attachment definition has this name."
        )
        yield ReconcileFinding("network_unknown", ippool_row.name, message)
    if ippool_row.gone_at is not None:
        message = (
            f"The object of the IPPool {ippool_row.name} was deleted in the cluster. Its entries still hold their"
            " addresses: delete the IPPool here, or create the object again."
        )
        yield ReconcileFinding("ippool_gone", ippool_row.name, message, Severity.WARNING)


def _duplicates(ippool_row: IPPool) -> Iterator[ReconcileFinding]:
    """Yield conflicts between entries (as in the conditions), and conflicts with other objects."""
    macs, ips = conflicts.count_entry_duplicates(ippool_row)
    if macs or ips:
        message = f"Entries of the IPPool {ippool_row.name} conflict with each other: {_values(macs, ips)}."
        yield ReconcileFinding(
            "ippool_duplicates", ippool_row.name, message, details={"macs": macs, "ips": ips}
        )
    macs, ips = ippool_row.duplicate_macs - macs, ippool_row.duplicate_ips - ips
    if macs > 0 or ips > 0:
        message = (
            f"Entries of the IPPool {ippool_row.name} conflict with IPAMClaims, running workloads, or addresses"
            f" that the network uses itself: {_values(macs, ips)}. The page of the IPPool lists them."
        )
        yield ReconcileFinding(
            "ippool_conflicts", ippool_row.name, message, details={"macs": macs, "ips": ips}
        )


def _values(macs: int, ips: int) -> str:
    counted = ((macs, "MAC address"), (ips, "IP address"))
    return ", ".join(_count(count, word) for count, word in counted if count > 0)


def _count(count: int, singular: str, plural: str = "") -> str:
    return f"{count} {singular if count == 1 else plural or singular + 'es'}"
