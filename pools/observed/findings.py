"""Findings about objects that use addresses: clashes inside the cluster, and values that cannot be read."""

from __future__ import annotations

from collections.abc import Iterator

from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import ReconcileFinding, SyncContext
from pools.models import ObservedCIDR, ObservedObject
from pools.models.observed import Severity
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
