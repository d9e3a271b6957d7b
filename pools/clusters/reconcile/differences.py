"""Rows of drift between register and cluster, and of findings of syncs."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pools.clusters.reconcile.handler import ObjectKey, ReconcileFinding
from pools.core import redaction
from pools.core.kubernetes.differences import FieldDifference
from pools.models import Drift, Finding, Now

_LONGEST_PATH = 500
_LONGEST_SUBJECT = 600
MAX_FINDINGS = 1000  # of one code: one object may have a hundred thousand problems


@dataclass(frozen=True)
class DriftedField:
    """A difference of one object, and the reason why it was not written."""

    key: ObjectKey
    difference: FieldDifference
    conflict: str = ""
    code: str = ""


def store_drift(
    cluster_id: int,
    kind: str,
    drifts: Sequence[DriftedField],
    covered: AbstractSet[ObjectKey] | None,
) -> None:
    """Replace the drift rows of a kind; with `covered`, only those of these objects.

    An ignored row stays ignored as long as both values are unchanged.
    """
    existing_rows = {
        (row.namespace, row.name, row.path): row
        for row in Drift.objects.filter(cluster_id=cluster_id, kind=kind)
        if covered is None or (row.namespace, row.name) in covered
    }
    # Two writes of one object (one for its status) may report one field: the later one counts.
    drifts_by_key = {(*drift.key, drift.difference.path[:_LONGEST_PATH]): drift for drift in drifts}
    new = []
    for (namespace, name, path), drift in drifts_by_key.items():
        row = existing_rows.pop((namespace, name, path), None)
        values = _values(drift)
        if row is None:
            location = {"namespace": namespace, "name": name, "path": path}
            new.append(Drift(cluster_id=cluster_id, kind=kind, since=Now(), **location, **values))
        elif any(getattr(row, key) != value for key, value in values.items()):
            if (row.desired, row.observed) != (values["desired"], values["observed"]):
                values |= {"ignored_by": None, "ignored_at": None, "ignored_reason": ""}
            Drift.objects.filter(pk=row.pk).update(**values)
    if new:
        Drift.objects.bulk_create(new, ignore_conflicts=True, batch_size=500)
    if existing_rows:
        Drift.objects.filter(pk__in=[row.pk for row in existing_rows.values()]).delete()


def _values(drift: DriftedField) -> dict[str, Any]:
    return {
        "desired": _json(redaction.redact_values(drift.difference.desired)),
        "observed": _json(redaction.redact_values(drift.difference.observed)),
        "managers": list(drift.difference.managers),
        "conflict": _text(redaction.redact(drift.conflict))[:1000],
        "conflict_code": drift.code[:63],
    }


def store_findings(
    cluster_id: int, kind: str, findings: Iterable[ReconcileFinding], *, add: bool = False
) -> None:
    """Replace the findings of a kind; with `add`, existing ones are kept.

    An existing finding keeps its time.

    Of one code the first MAX_FINDINGS are kept; `more_findings` counts the others.
    """
    existing_rows = {
        (row.code, row.subject): row
        for row in Finding.objects.filter(cluster_id=cluster_id, kind=kind)
    }
    findings_by_key = {
        (finding.code, _text(finding.subject)[:_LONGEST_SUBJECT]): finding
        for finding in _limit_findings(findings)
    }
    new = []
    for (code, subject), finding in findings_by_key.items():
        row = existing_rows.pop((code, subject), None)
        values = {
            "severity": finding.severity.value,
            "message": _text(redaction.redact(finding.message))[:1000],
            "details": _json(redaction.redact_values(finding.details)),
        }
        if row is None:
            identity = {"code": code, "subject": subject}
            new.append(Finding(cluster_id=cluster_id, kind=kind, since=Now(), **identity, **values))
        elif any(getattr(row, key) != value for key, value in values.items()):
            Finding.objects.filter(pk=row.pk).update(**values)
    if new:
        Finding.objects.bulk_create(new, ignore_conflicts=True, batch_size=500)
    if existing_rows and not add:
        Finding.objects.filter(pk__in=[row.pk for row in existing_rows.values()]).delete()


def _limit_findings(findings: Iterable[ReconcileFinding]) -> Iterator[ReconcileFinding]:
    counts: Counter[str] = Counter()
    for finding in findings:
        counts[finding.code] += 1
        if counts[finding.code] <= MAX_FINDINGS:
            yield finding
    for code, count in counts.items():
        if remaining_count := max(count - MAX_FINDINGS, 0):
            message = f"{remaining_count} more of {code} are not shown."
            yield ReconcileFinding(
                "more_findings", code, message, details={"code": code, "count": remaining_count}
            )


def _json(value: object) -> Any:
    """Return a value as the database returns it, so that an equal value is no change."""
    return json.loads(_text(json.dumps(value, default=str)).replace("\\u0000", ""))


def _text(text: str) -> str:
    return text.replace("\0", "").encode(errors="replace").decode()
