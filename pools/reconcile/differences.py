"""What is another in the cluster than in the register, and what passes found: rows for people."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pools.core import differences
from pools.models import Drift, Finding
from pools.models.fields import Now
from pools.reconcile.kinds import Found

Key = tuple[str, str, str]  # namespace, name, path


def keep_drift(
    cluster_id: int,
    kind: str,
    found: Sequence[tuple[str, str, differences.Difference, str]],
) -> None:
    """Let the kind's drift rows be these: (namespace, name, difference, why it was not written).

    What is ignored stays so as long as both values are the same.
    """
    known: dict[Key, Drift] = {
        (row.namespace, row.name, row.path): row
        for row in Drift.objects.filter(cluster_id=cluster_id, kind=kind)
    }
    for namespace, name, difference, conflict in found:
        row = known.pop((namespace, name, difference.path), None)
        values = {
            "desired": difference.desired,
            "observed": difference.observed,
            "managers": list(difference.managers),
            "conflict": conflict[:1000],
        }
        if row is None:
            Drift.objects.create(
                cluster_id=cluster_id, kind=kind, namespace=namespace, name=name,
                path=difference.path, since=Now(), **values,
            )  # fmt: skip
        elif any(getattr(row, key) != value for key, value in values.items()):
            same = (row.desired, row.observed) == (difference.desired, difference.observed)
            if not same:
                values |= {"ignored_by": None, "ignored_at": None, "ignored_reason": ""}
            Drift.objects.filter(pk=row.pk).update(**values)
    Drift.objects.filter(pk__in=[row.pk for row in known.values()]).delete()


def keep_findings(cluster_id: int, kind: str, found: Iterable[Found]) -> None:
    """Let the kind's findings be these; one that stands already keeps its time."""
    known = {
        (row.code, row.subject): row
        for row in Finding.objects.filter(cluster_id=cluster_id, kind=kind)
    }
    new = []
    for one in found:
        values = {
            "severity": one.severity.value,
            "message": one.message[:1000],
            "details": one.details,
        }
        row = known.pop((one.code, one.subject[:600]), None)
        if row is None:
            new.append(
                Finding(
                    cluster_id=cluster_id,
                    kind=kind,
                    code=one.code,
                    subject=one.subject[:600],
                    since=Now(),
                    **values,
                )
            )
        elif any(getattr(row, key) != value for key, value in values.items()):
            Finding.objects.filter(pk=row.pk).update(**values)
    Finding.objects.bulk_create(new, ignore_conflicts=True)
    if known:
        Finding.objects.filter(pk__in=[row.pk for row in known.values()]).delete()
