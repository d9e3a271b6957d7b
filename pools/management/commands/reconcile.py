"""`manage.py reconcile NAME [--dry-run] [--json] [--wait SECONDS]`: one full sync of a cluster."""

import json
import time
from collections.abc import Iterator
from typing import Any

from django.core.management import base

from pools.clusters.reconcile import leases, registry, sync
from pools.core import errors
from pools.models import Connection, SyncRun, Trigger
from pools.platform.leases import Lease

_POLL_SECONDS = 0.2  # while another worker has the lease
_COUNTS = ("seen", "changed", "gone", "written", "failed", "would")


class Busy(errors.Conflict):
    """Another worker is syncing the cluster."""

    code = "cluster_in_use"


class Command(base.BaseCommand):
    help = "Run a full sync of a cluster; the exit status is 0 only if all kinds succeeded."

    def add_arguments(self, parser: base.CommandParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--dry-run", action="store_true", help="show the planned changes without applying them"
        )
        parser.add_argument("--json", action="store_true", help="print the result as JSON")
        parser.add_argument(
            "--wait",
            type=float,
            default=30,
            metavar="SECONDS",
            help="how long to wait for another worker that syncs the cluster (30)",
        )

    def handle(self, **options: Any) -> None:
        dry = options["dry_run"]
        try:
            lease = _lease(options["name"], dry=dry, seconds=options["wait"])
        except errors.IpamError as error:
            raise base.CommandError(f"{error.code}: {error.message}") from error
        trigger = Trigger.DRY_RUN if dry else Trigger.CHANGE
        run = sync.run(lease, registry.HANDLERS, trigger=trigger)
        if options["json"]:
            self.stdout.write(json.dumps(_document(run)))
        else:
            for line in _lines(run):
                self.stdout.write(line)
        if not run.succeeded:
            raise base.CommandError(_failure(run))


def _lease(name: str, *, dry: bool, seconds: float) -> Lease:
    """Wait for the cluster's lease and return it. Raises NotFound, ConnectionPaused, Busy."""
    author, deadline = leases.worker_name(), time.monotonic() + seconds
    while True:
        connection = Connection.objects.filter(cluster__name=name).first()
        if connection is None:
            raise errors.NotFound(f"There is no connected cluster {name}.")
        if connection.paused:
            raise errors.ConnectionPaused(f"{name} is paused: resume it first.")
        lease = (leases.borrow if dry else leases.take)(connection.pk, author)
        if lease is not None:
            return lease
        if time.monotonic() > deadline:
            holder = connection.leased_by or "another worker"
            raise Busy(f"{holder} is syncing {name}; nothing was changed.")
        time.sleep(_POLL_SECONDS)


def _failure(run: SyncRun) -> str:
    """Return why the sync run failed: the cluster's error, else the first kind's, else the objects."""
    if run.error_code:
        return f"{run.error_code}: {run.error}"
    for counts in run.kinds.values():
        if counts.get("code") and not counts.get("not_served"):
            return f"{counts['code']}: {counts['message']}"
    failed = {kind: counts["failed"] for kind, counts in run.kinds.items() if counts["failed"]}
    return "objects failed: " + ", ".join(f"{kind} {count}" for kind, count in failed.items())


def _document(run: SyncRun) -> dict[str, Any]:
    return {
        "cluster": run.cluster.name,
        "dry_run": run.trigger == Trigger.DRY_RUN,
        "succeeded": run.succeeded,
        "seconds": _seconds(run),
        "code": run.error_code,
        "message": run.error,
        "kinds": run.kinds,
    }


def _seconds(run: SyncRun) -> float:
    return round((run.ended_at - run.started_at).total_seconds(), 3) if run.ended_at else 0


def _lines(run: SyncRun) -> Iterator[str]:
    yield f"{run.cluster.name}: {'succeeded' if run.succeeded else 'FAILED'} in {_seconds(run)} s"
    width = max((len(kind) for kind in run.kinds), default=0)
    for kind, counts in run.kinds.items():
        counters = "  ".join(f"{name} {counts[name]}" for name in _COUNTS if name in counts)
        yield f"  {kind:<{width}}  {counters}"
        if counts.get("not_served") and not counts.get("code"):
            yield "    not served"
        elif counts.get("code"):
            yield f"    {counts['code']}: {counts['message']}"
        for object_plan in counts.get("plan", []):
            yield f"    {'/'.join(filter(None, (object_plan['namespace'], object_plan['name'])))}"
            for field in object_plan["fields"]:
                before, after = (json.dumps(field[side]) for side in ("observed", "desired"))
                yield f"      {field['path']}: {before} -> {after}"
