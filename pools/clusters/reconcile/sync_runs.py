"""Sync runs: rows with the result of each sync."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from pools.clusters import recovery_mode
from pools.core import errors
from pools.models import Cluster, SyncRun, Trigger
from pools.platform import database

MAX_RUNS = 200  # for each cluster; the same number for watch events
LONGEST_PLAN = 1000  # objects of one kind
_ALWAYS = {"seen", "changed", "written", "failed"}


@dataclass
class KindCounts:
    """Counts of one kind in one sync; `would` counts the objects that a dry run would write."""

    seen: int = 0
    changed: int = 0
    gone: int = 0
    written: int = 0
    would: int = 0
    failed: int = 0
    code: str = ""  # error of the kind as a whole
    message: str = ""
    not_served: bool = False  # the cluster lacks the kind: no fault, even with a code
    not_permitted: bool = False  # the kind is optional, and must not be read: no fault
    plan: list[dict[str, Any]] = field(default_factory=list)  # of a dry run: objects and fields

    def as_json(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if value or key in _ALWAYS}

    @property
    def is_fault(self) -> bool:
        """True if the kind as a whole failed."""
        return bool(self.code) and not self.not_served

    @property
    def did_nothing(self) -> bool:
        return not (self.changed or self.gone or self.written or self.failed or self.code)


def begin(cluster: Cluster, trigger: Trigger) -> SyncRun:
    """Create the row at the start, so that a running or crashed sync is visible."""
    return SyncRun.objects.create(cluster=cluster, trigger=trigger, started_at=database.now())


def watch_run(cluster: Cluster, began: datetime) -> SyncRun:
    """Return an unsaved sync run of watch events; `end` saves it only after a change or a failure."""
    return SyncRun(cluster=cluster, trigger=Trigger.WATCH, started_at=began)


def end(record: SyncRun, counts: Mapping[str, KindCounts], error: errors.IpamError | None) -> None:
    """Record the result of a sync; a run of watch events without changes is not saved."""
    record.kinds = {kind: kind_counts.as_json() for kind, kind_counts in counts.items()}
    record.succeeded = error is None and not any(
        kind_counts.is_fault or kind_counts.failed for kind_counts in counts.values()
    )
    record.error_code = error.code[:63] if error else ""
    record.error = error.message[:500] if error else ""
    record.ended_at = database.now()
    idle = error is None and all(kind_counts.did_nothing for kind_counts in counts.values())
    if record.pk is None and idle:
        return
    record.save()
    _delete_old_runs(record)
    if record.trigger != Trigger.WATCH and error is None:
        recovery_mode.end_when_listed()


def complete_kinds(cluster_id: int) -> list[str]:
    """Return the kinds of which the last full sync run of the cluster listed all objects."""
    runs = SyncRun.objects.filter(cluster=cluster_id, ended_at__isnull=False)
    full = runs.exclude(trigger__in=[Trigger.WATCH, Trigger.DRY_RUN]).order_by("-id")
    kinds = full.values_list("kinds", flat=True).first() or {}
    return [
        kind
        for kind, counts in kinds.items()
        if not any(counts.get(name) for name in ("code", "not_served", "not_permitted"))
    ]


def _delete_old_runs(record: SyncRun) -> None:
    rows = SyncRun.objects.filter(cluster=record.cluster_id).order_by("-id")
    if record.trigger == Trigger.WATCH:
        rows = rows.filter(trigger=Trigger.WATCH)
    else:
        rows = rows.exclude(trigger=Trigger.WATCH)
    old = list(rows.values_list("pk", flat=True)[MAX_RUNS:])
    if old:
        SyncRun.objects.filter(pk__in=old).delete()
