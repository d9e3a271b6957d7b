"""Rows of the CIDRs that objects of a cluster use."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from pools.core.observed.uses import ObservedUses
from pools.models import AddressSpace, Cluster, ObservedCIDR, ObservedObject
from pools.observed.findings import CLASH
from pools.platform.metrics.registry import Value, value

_BATCH = 2000  # rows in one statement
INVALID = "observed_object_invalid"  # problem code of an object of which a part cannot be read


@dataclass(frozen=True)
class _Key:
    uid: str
    role: str
    cidr: str


def store(
    cluster: Cluster, kind: str, objects: Sequence[tuple[ObservedObject, ObservedUses]]
) -> None:
    """Replace what the objects use, and note in their rows what cannot be read of them."""
    for row, observed in objects:
        if observed.problems:
            row.problem_code = INVALID
            row.problem = "; ".join(
                f"{problem.field}: {problem.message}" for problem in observed.problems
            )[:1000].replace("\0", "")
    space = AddressSpace.objects.get(cluster=cluster, name=AddressSpace.OWN)
    desired = {
        _Key(row.uid, use.role.value, str(use.cidr)): ObservedCIDR(
            space=space,
            kind=kind,
            namespace=row.namespace,
            name=row.name,
            uid=row.uid,
            role=use.role.value,
            cidr=str(use.cidr),
            detail=use.detail,
        )
        for row, observed in objects
        for use in observed.uses
    }
    stale = []
    for pk, uid, role, cidr, *texts in ObservedCIDR.objects.filter(
        space=space, kind=kind, uid__in=[row.uid for row, _ in objects]
    ).values_list("pk", "uid", "role", "cidr", "namespace", "name", "detail"):
        key = _Key(uid, role, str(cidr))
        fresh = desired.get(key)
        if fresh is not None and [fresh.namespace, fresh.name, fresh.detail] == texts:
            del desired[key]
        else:
            stale.append(pk)
    ObservedCIDR.objects.filter(pk__in=stale).delete()
    ObservedCIDR.objects.bulk_create(desired.values(), batch_size=_BATCH)


def forget(cluster: Cluster, kind: str, rows: Iterable[ObservedObject]) -> None:
    """Remove what deleted objects used."""
    ObservedCIDR.objects.filter(
        space__cluster=cluster,
        space__name=AddressSpace.OWN,
        kind=kind,
        uid__in=[row.uid for row in rows],
    ).delete()


def values() -> Iterator[Value]:
    """Yield the observed CIDRs by cluster and kind, and the clashes of each cluster."""
    cidrs = ObservedCIDR.objects.order_by().values_list("space__cluster__name", "kind")
    for cluster, kind, count in cidrs.annotate(count=Count("pk")):
        yield value("ipam_observed_cidrs", count, cluster=cluster, kind=kind)
    clashes = Count("findings", filter=Q(findings__code=CLASH))
    for cluster, count in (
        Cluster.objects.order_by().annotate(count=clashes).values_list("name", "count")
    ):
        yield value("ipam_address_clashes_detected", count, cluster=cluster)
