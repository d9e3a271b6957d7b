"""Apply the desired writes of a handler, then store its drift and findings as rows."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence, Set as AbstractSet
from dataclasses import dataclass
from typing import Any

from pools.clusters.reconcile import ingest, storage, writes
from pools.clusters.reconcile.handler import (
    Handler,
    ObjectKey,
    ReconcileFinding,
    SyncContext,
    Write,
)
from pools.clusters.reconcile.sync_runs import LONGEST_PLAN, KindCounts
from pools.clusters.reconcile.writes import WriteResult
from pools.core import redaction
from pools.core.kubernetes.differences import FieldDifference
from pools.core.kubernetes.resources import Manifest
from pools.models import Drift, Finding, Now, ObservedObject, Severity
from pools.platform.outbound import faults

# The same fault for this many objects in a row is a fault of the cluster.
IN_A_ROW = 10
_CLUSTER_FAULTS = (faults.Forbidden, faults.ServerFault)
_FLUSH = 100  # written objects that are ingested at once
OBJECT_FAILED = "object_failed"  # code of a finding


def apply_desired(context: SyncContext, handler: Handler, counts: KindCounts) -> None:
    """Send the desired writes of a handler; store drift and findings. Raises faults that end the kind."""
    _apply_once(context, handler, counts)
    if counts.written and handler.prompt:
        second_counts = KindCounts()  # a repeated failure is counted once
        _apply_once(context, handler, second_counts)
        counts.written += second_counts.written


def _apply_once(context: SyncContext, handler: Handler, counts: KindCounts) -> None:
    context.failures.pop(handler.kind, None)
    # The generator is exhausted first, so that no transaction of the handler waits for the cluster.
    desired_writes = list(handler.desired(context))
    results: list[WriteResult] = []
    fault: faults.ClusterFault | None = None
    try:
        _send_all(context, handler, desired_writes, results, counts)
    except faults.ClusterFault as error:
        fault = error
    findings = [] if context.dry_run or fault else list(handler.findings(context))
    counts.failed += len(context.failures.get(handler.kind, ()))
    if not (context.dry_run or fault):
        findings += _failed_objects(context, handler, results)
    if not context.dry_run:
        whole = fault is None and not context.from_watch
        covered = None if whole else {result.write.key for result in results} | context.changed_keys
        with context.transaction():
            store_drift(context.cluster.pk, handler.kind, _drifted_fields(results), covered)
            if not fault:
                store_findings(context.cluster.pk, handler.kind, findings)
    if fault:
        raise fault


def _failed_objects(
    context: SyncContext, handler: Handler, results: Sequence[WriteResult]
) -> list[ReconcileFinding]:
    """Return a finding for each object that failed for an unexpected reason, in whatever step.

    After a watch event, objects that it does not concern keep theirs.
    """
    texts: dict[str, str] = {}
    if not handler.problems_are_findings:
        rows = ObservedObject.objects.filter(cluster=context.cluster, kind=handler.kind)
        unexpected = rows.filter(problem_code__in=ingest.UNEXPECTED)
        for namespace, name, problem in unexpected.values_list("namespace", "name", "problem"):
            texts[_name((namespace, name))] = problem
    if context.from_watch:
        earlier = Finding.objects.filter(
            cluster=context.cluster, kind=handler.kind, code=OBJECT_FAILED
        )
        done = [_name(key) for key in {*context.changed_keys, *(r.write.key for r in results)}]
        for subject, details in earlier.exclude(subject__in=done).values_list("subject", "details"):
            texts[subject] = details["problem"]
    for result in results:
        if result.fault is not None and not result.field_differences:  # else its drift names it
            texts[_name(result.write.key)] = result.fault.message
    texts |= context.failures.get(handler.kind, {})
    return [
        ReconcileFinding(
            OBJECT_FAILED,
            subject,
            f"{subject if ' ' in subject else f'{handler.kind} {subject}'} could not be processed: {text}."
            " The other objects were; each sync run tries it again.",
            Severity.ERROR,
            {"problem": text},
        )
        for subject, text in texts.items()
    ]


def _name(key: ObjectKey) -> str:
    return "/".join(filter(None, key))


def _send_all(
    context: SyncContext,
    handler: Handler,
    desired_writes: Sequence[Write],
    results: list[WriteResult],
    counts: KindCounts,
) -> None:
    observed_objects = _observed_objects(context, handler, desired_writes)
    stored: list[WriteResult] = []
    trouble = 0
    try:
        for write in desired_writes:
            ours = write.resource == context.served.get(handler.kind)
            fresh = ours and (not context.from_watch or write.key in observed_objects)
            result = writes.send(
                context, write, observed_objects.get(write.key) if fresh else None, fresh=fresh
            )
            results.append(result)
            _count(counts, result, dry_run=context.dry_run)
            if result.stored is not None and ours:
                observed_objects[write.key] = result.stored
                stored.append(result)
            if len(stored) == _FLUSH:
                _ingest_stored(context, handler, stored)
            trouble = trouble + 1 if isinstance(result.fault, _CLUSTER_FAULTS) else 0
            if trouble == IN_A_ROW and isinstance(result.fault, faults.ClusterFault):
                raise result.fault
    finally:
        _ingest_stored(context, handler, stored)


def _observed_objects(
    context: SyncContext, handler: Handler, desired_writes: Sequence[Write]
) -> dict[ObjectKey, Manifest]:
    """Return the objects as last observed, so that unchanged objects are not read from the cluster."""
    if not desired_writes:
        return {}
    if not context.from_watch:
        return {
            storage.object_key(manifest): manifest
            for manifest in context.listed.get(handler.kind, ())
        }
    names = {write.name for write in desired_writes}
    rows = ObservedObject.objects.filter(
        cluster=context.cluster, kind=handler.kind, name__in=names
    ).exclude(problem_code=storage.UNSTORABLE)
    return {
        (namespace, name): manifest
        for namespace, name, manifest in rows.values_list("namespace", "name", "manifest")
    }


def _ingest_stored(context: SyncContext, handler: Handler, written: list[WriteResult]) -> None:
    """Ingest written objects, so that the next sync does not treat them as changed."""
    manifests_by_uid = {
        result.stored["metadata"]["uid"]: result.stored for result in written if result.stored
    }
    ingest.ingest(context, handler, context.served[handler.kind], list(manifests_by_uid.values()))
    digests: dict[str, dict[str, str]] = {}
    for result in written:
        if result.stored and result.digest:
            uid = result.stored["metadata"]["uid"]
            digests.setdefault(result.write.manager, {})[uid] = result.digest
    if digests:
        with context.transaction():
            for manager, digests_by_uid in digests.items():
                storage.store_written(context.cluster.pk, handler.kind, manager, digests_by_uid)
    written.clear()


def _count(counts: KindCounts, result: WriteResult, *, dry_run: bool) -> None:
    counts.written += result.stored is not None
    counts.failed += result.fault is not None
    if not (dry_run and result.field_differences and result.write.send):
        return
    counts.would += 1
    if len(counts.plan) < LONGEST_PLAN:
        counts.plan.append(
            {
                "namespace": result.write.namespace,
                "name": result.write.name,
                "fields": [_field_as_json(difference) for difference in result.field_differences],
            }
        )


def _field_as_json(difference: FieldDifference) -> dict[str, Any]:
    return {
        "path": difference.path,
        "desired": redaction.redact_values(difference.desired),
        "observed": redaction.redact_values(difference.observed),
    }


def _drifted_fields(results: Sequence[WriteResult]) -> list[DriftedField]:
    return [
        DriftedField(result.write.key, difference, *_conflict(result, difference))
        for result in results
        for difference in result.field_differences
    ]


def _conflict(result: WriteResult, difference: FieldDifference) -> tuple[str, str]:
    """Return the reason and the code why a field was not written; ("", "") without a fault."""
    fault = result.fault
    if fault is None:
        return "", ""
    names = writes.other_managers(difference, result.write.manager)
    if isinstance(fault, faults.FieldConflict) and names:
        return f"owned by {', '.join(names)}", fault.code
    return fault.message or fault.code, fault.code


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
