"""Rows of the CIDRs that objects of a cluster use, their metrics, and findings about them: clashes, and values that cannot be read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from django.db.models import Count, Q

from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.core.observed.uses import ObservedUses
from pools.models import AddressSpace, Cluster, ObservedCIDR, ObservedObject, Severity
from pools.platform.metrics.registry import Value, value
from pools.register import overlaps

CLASH = "address_clash"
UNREADABLE = "object_not_readable"
_CLASHES = "clashes of observed CIDRs"  # key of context.notes
_Pair = tuple[overlaps.Owned, overlaps.Owned]


def find_problems(context: SyncContext, kind: str) -> Iterator[ReconcileFinding]:
    """Yield a finding for each object of the kind of which something cannot be read."""
    rows = ObservedObject.objects.filter(cluster=context.cluster, kind=kind)
    unreadable = rows.exclude(problem_code="").order_by("namespace", "name").defer("manifest")
    yield from ingest.find_each(context, kind, unreadable, _problem, name=_name)


def _name(row: ObservedObject) -> str:
    return f"{row.namespace}/{row.name}" if row.namespace else row.name


def _problem(row: ObservedObject) -> Iterator[ReconcileFinding]:
    message = (
        f"{row.kind} {_name(row)} cannot be read: {row.problem} What can be read of it counts."
    )
    yield ReconcileFinding(UNREADABLE, _name(row), message, details={"code": row.problem_code})


def find_clashes(context: SyncContext, kind: str) -> Iterator[ReconcileFinding]:
    """Yield a finding for each object of the kind whose addresses clash with others of the cluster.

    A clash of two objects is a finding of the kind whose network is inside, or that comes first.
    """
    # Watch events of CiliumNodes are frequent, and in multi-pool mode few of them have observed CIDRs.
    if not ObservedCIDR.objects.filter(space__cluster=context.cluster, kind=kind).exists():
        return
    if _CLASHES not in context.notes:
        context.notes[_CLASHES] = overlaps.find_clashes(context.cluster.pk)
    clashes = [pair for pair in context.notes[_CLASHES] if _reporting_owner(pair).kind == kind]
    yield from ingest.find_each(
        context, kind, clashes, _clash, name=lambda pair: str(_reporting_owner(pair))
    )


def _reporting_owner(pair: _Pair) -> overlaps.NetworkOwner:
    (_, outer), (_, inner) = pair
    return inner if inner.kind else outer


def _clash(pair: _Pair) -> Iterator[ReconcileFinding]:
    (wide, wide_owner), (narrow, narrow_owner) = pair
    relation = "is also used by" if wide == narrow else f"lies inside {wide} of"
    message = (
        f"{narrow} of {narrow_owner} ({narrow_owner.category}) {relation} {wide_owner} "
        f"({wide_owner.category}): the same address can be used twice in the cluster."
    )
    details = {
        "cidrs": [str(wide), str(narrow)],
        "owners": [str(wide_owner), str(narrow_owner)],
    }
    subject = f"{narrow} {narrow_owner}, {wide} {wide_owner}"
    yield ReconcileFinding(CLASH, subject, message, Severity.ERROR, details)


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
