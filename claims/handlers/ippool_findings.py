"""What people should know of a cluster's IPPools."""

from __future__ import annotations

from collections.abc import Iterator

from claims.core import ippool
from claims.handlers import ippool_writes
from claims.models import IPPool
from claims.models.networks import Kind
from pools.models import ObservedObject
from pools.models.observed import Severity
from pools.reconcile.kinds import Found, Pass

KIND = ippool.KIND


def of(pass_: Pass) -> Iterator[Found]:
    """Duplicates, networks that nobody saw, objects that are gone or not in the register."""
    names = set()
    rows = IPPool.objects.filter(cluster=pass_.cluster).select_related("network")
    for one in rows.order_by("name"):
        names.add(one.name)
        yield from _standing(one)
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


def _standing(one: IPPool) -> Iterator[Found]:
    if one.duplicate_macs or one.duplicate_ips:
        counts = {"macs": one.duplicate_macs, "ips": one.duplicate_ips}
        message = (
            f"The IPPool {one.name} has duplicates: {_count(counts['macs'], 'MAC address')},"
            f" {_count(counts['ips'], 'IP address')}."
        )
        yield Found("ippool_duplicates", one.name, message, details=counts)
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


def _count(count: int, one: str, many: str = "") -> str:
    return f"{count} {one if count == 1 else many or one + 'es'}"
