"""A full sync of one cluster: identity, discovery, lists, then for each kind ingest, desired, writes.

Level-driven: two syncs reach the desired state from any state (rule `reconcile-converges`). A kind that is
not served, or whose list failed, permits no conclusion (rule `unknown-is-not-absent`). An invalid object
fails alone (rule `bad-object-fails-alone`), and so does a kind; a fault of the cluster ends the sync.
"""

import contextlib
import functools
import logging
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from django.db import DatabaseError, connection as database_connection, transaction

from pools.clusters.client.api_client import ClusterClient, Listing
from pools.clusters.reconcile import (
    apply,
    connecting,
    ingest,
    leases,
    registry,
    storage,
    sync_runs,
    watchers,
)
from pools.clusters.reconcile.handler import (
    BUGS,
    Handler,
    ReconcileFinding,
    SyncContext,
    projection_for,
)
from pools.clusters.reconcile.sync_runs import KindCounts
from pools.core import errors
from pools.core.kubernetes.resources import Resource
from pools.models import Connection, Now, ObservedObject, SyncRun, Trigger
from pools.platform import events, process_metrics
from pools.platform.leases import Lease, LeaseLost
from pools.platform.outbound import faults

log = logging.getLogger(__name__)


class ReconcileFailed(errors.IpamError):
    """The sync failed with an internal error. See the log of the worker."""

    code = "internal_error"


class SyncStopped(errors.IpamError):
    """The sync was stopped."""

    code = "stopped"


@dataclass(frozen=True)
class _ListedKind:
    """The complete list of one kind, and the rows as they were before the list."""

    handler: Handler
    read: Resource
    listing: Listing
    observed_rows: storage.ObservedRows


def run(
    lease: Lease,
    handlers: Sequence[Handler],
    *,
    trigger: Trigger = Trigger.SCHEDULE,
    open_client: connecting.OpenClient = connecting.client_for,
) -> SyncRun:
    """Run a full sync, record it as a sync run, release the lease. Does not raise faults of the cluster.

    With Trigger.DRY_RUN, only the sync run is written; its kinds have the plan.
    """
    connection = Connection.objects.select_related("cluster").get(pk=lease.row_id)
    record = sync_runs.begin(connection.cluster, trigger)
    counts: dict[str, KindCounts] = {}
    dry = trigger == Trigger.DRY_RUN
    with (
        record_outcome(lease, record, counts, dry=dry) as outcome,
        leases.renew_in_background(lease),
        open_client(connection) as client,
    ):
        outcome.version = client.version()
        identity = connecting.verify_identity(connection, client)
        context = make_context(connection, client, lease, dry_run=dry)
        if not (connection.identity or dry):
            with context.transaction():
                connecting.store_identity(connection, identity)
        _all_kinds(context, handlers, counts)
        if not dry:
            with isolate_kind(
                KindCounts(), "the observers"
            ):  # their failure is not that of the sync
                registry.notify(context, counts, record.started_at)
    return record


def _all_kinds(
    context: SyncContext, handlers: Sequence[Handler], counts: dict[str, KindCounts]
) -> None:
    listed = _list_all(context, handlers, counts)
    with rolled_back() if context.dry_run else contextlib.nullcontext():
        _ingest_all(context, listed, counts)
        _apply_all(context, listed, counts)


@dataclass
class SyncOutcome:
    """The outcome of a sync; `version` is that of the server."""

    version: str = ""
    failed_objects: int = 0


@contextlib.contextmanager
def record_outcome(
    lease: Lease,
    record: SyncRun,
    counts: dict[str, KindCounts],
    *,
    dry: bool = False,
    full: bool = True,
) -> Iterator[SyncOutcome]:
    """Release the lease and record the sync run when the body ends; a fault causes back-off."""
    outcome = SyncOutcome()
    started = time.perf_counter()
    fault: errors.IpamError | None = None
    try:
        yield outcome
    except errors.IpamError as error:
        fault = error
    except ingest.DATABASE_AWAY as error:
        log.warning("the database failed during a sync: %s", error)
        fault = errors.Unavailable()
    except (KeyboardInterrupt, SystemExit):
        fault = SyncStopped()
        raise
    except BaseException as error:
        fault = ReconcileFailed(f"{type(error).__name__}: see the log of the worker")
        raise
    finally:
        # Reopen a broken connection; if that fails, the lease expires.
        if not database_connection.in_atomic_block:
            database_connection.close_if_unusable_or_obsolete()
        if full and not dry:
            _count_metrics(
                record.cluster.name,
                fault or _first_kind_fault(counts),
                time.perf_counter() - started,
            )
        with contextlib.suppress(*ingest.DATABASE_AWAY):
            outcome.failed_objects = (
                0 if dry else sum(kind_counts.failed for kind_counts in counts.values())
            )
            _release_lease(lease, fault or _first_kind_fault(counts), outcome, dry=dry, full=full)
            sync_runs.end(record, counts, fault)


def _first_kind_fault(counts: Mapping[str, KindCounts]) -> errors.IpamError | None:
    """Return the error of the first kind that failed as a whole, or None."""
    kind_counts = next(
        (kind_counts for kind_counts in counts.values() if kind_counts.is_fault), None
    )
    if kind_counts is None:
        return None
    broken = errors.IpamError(kind_counts.message)
    broken.code = kind_counts.code
    return broken


def _count_metrics(cluster: str, fault: errors.IpamError | None, seconds: float) -> None:
    if isinstance(fault, LeaseLost):
        process_metrics.count("ipam_lease_lost_total")
    if isinstance(fault, errors.ConnectionPaused | SyncStopped):
        return
    process_metrics.observe("ipam_reconcile_duration_seconds", seconds, cluster=cluster)
    result = "failure" if fault else "success"
    process_metrics.count("ipam_reconcile_total", cluster=cluster, result=result)
    if fault:
        process_metrics.count("ipam_reconcile_errors_total", cluster=cluster, reason=fault.code)


def _release_lease(
    lease: Lease,
    fault: errors.IpamError | None,
    outcome: SyncOutcome,
    *,
    dry: bool,
    full: bool,
) -> None:
    if isinstance(fault, LeaseLost):
        return
    if dry or isinstance(fault, errors.ConnectionPaused | SyncStopped):
        leases.release(lease)
    elif fault:
        retry_after = getattr(fault, "retry_after", 0)
        leases.record_failure(
            lease, code=fault.code, message=fault.message, retry_after=retry_after
        )
    elif full:
        leases.record_success(lease, version=outcome.version, failed_objects=outcome.failed_objects)
    else:
        leases.release(lease, failed_objects=outcome.failed_objects)


def make_context(
    connection: Connection,
    client: ClusterClient,
    lease: Lease,
    *,
    dry_run: bool = False,
    from_watch: bool = False,
    changed_keys: frozenset[tuple[str, str]] = frozenset(),
) -> SyncContext:
    """Return the context for handlers."""
    author = events.Author(actor=f"cluster {connection.cluster.name}", source="cluster")
    return SyncContext(
        cluster=connection.cluster,
        connection=connection,
        client=client,
        author=author,
        transaction=functools.partial(leases.transaction_under_lease, lease, author),
        prove=functools.partial(leases.prove, lease),
        dry_run=dry_run,
        from_watch=from_watch,
        changed_keys=changed_keys,
    )


@contextlib.contextmanager
def rolled_back() -> Iterator[None]:
    """Roll back the writes of the body; a dry run thus sees the effect of its own ingest."""
    with transaction.atomic(), database_connection.cursor() as cursor:
        # The body may read objects from a slow cluster within the transaction.
        cursor.execute("SET LOCAL idle_in_transaction_session_timeout = 0")
        try:
            yield
        finally:
            transaction.set_rollback(True)


@contextlib.contextmanager
def isolate_kind(kind_counts: KindCounts, kind: str) -> Iterator[None]:
    """Store a failure that affects one kind only in its counts; other errors end the sync."""
    try:
        yield
    except (
        faults.Forbidden,
        faults.MalformedResponse,
        faults.Gone,
        faults.KindNotServed,
        faults.Rejected,
        faults.ServerFault,
    ) as error:
        kind_counts.code, kind_counts.message = error.code, error.message
    except ingest.DATABASE_AWAY:
        raise
    except (DatabaseError, *BUGS):
        log.exception("the sync of %s failed", kind)
        kind_counts.code = ReconcileFailed.code
        kind_counts.message = (
            f"The sync of {kind} failed with an internal error. See the log of the worker."
        )


def _list_all(
    context: SyncContext, handlers: Sequence[Handler], counts: dict[str, KindCounts]
) -> list[_ListedKind]:
    """List all kinds, before anything is concluded from one of the lists."""
    resources = [resource for handler in handlers for resource in handler.resources]
    discovery = context.client.discover(resources)
    connecting.store_served_kinds(context, handlers, discovery)
    listed: list[_ListedKind] = []
    for handler in handlers:
        kind_counts = counts.setdefault(handler.kind, KindCounts())
        # The first served version; an earlier one whose API group failed may be served, so it counts too.
        answer = {*discovery.served, *discovery.faults}
        read = next((resource for resource in handler.resources if resource in answer), None)
        if read is None or read in discovery.faults:
            with isolate_kind(kind_counts, handler.kind):
                connecting.record_absent_kind(context, handler, discovery, kind_counts)
            continue
        with isolate_kind(kind_counts, handler.kind), _record_forbidden(context, read, kind_counts):
            observed_rows = storage.observed_rows(context.cluster.pk, handler.kind)
            listing = context.client.list(read, project=projection_for(handler))
            kind_counts.seen = len(listing.items)
            context.served[handler.kind] = read
            context.complete.add(handler.kind)
            context.listed[handler.kind] = listing.items
            listed.append(_ListedKind(handler, read, listing, observed_rows))
    return listed


@contextlib.contextmanager
def _record_forbidden(
    context: SyncContext, read: Resource, kind_counts: KindCounts
) -> Iterator[None]:
    """Record a finding if the credentials must not read an optional kind; its rows stay."""
    try:
        yield
    except faults.Forbidden as error:
        if not read.reads_for:
            raise
        kind_counts.not_permitted = True
        message = f"Cannot update {read.reads_for}: {error.message}"
        if not context.dry_run:
            with context.transaction():
                apply.store_findings(
                    context.cluster.pk,
                    read.kind,
                    [ReconcileFinding("not_permitted", read.plural, message)],
                )


def _ingest_all(
    context: SyncContext, listed: Sequence[_ListedKind], counts: dict[str, KindCounts]
) -> None:
    positions: dict[str, watchers.Position] = {}
    for listed_kind in listed:
        kind = listed_kind.handler.kind
        with isolate_kind(counts[kind], kind):
            _ingest(context, listed_kind, counts[kind])
            if not listed_kind.handler.watched:
                continue
            version = listed_kind.listing.resource_version
            positions[kind] = watchers.Position(listed_kind.read.api_version, version)
    if positions:
        with context.transaction():
            watchers.store(context.connection.pk, positions)


def _ingest(context: SyncContext, listed_kind: _ListedKind, kind_counts: KindCounts) -> None:
    handler, rows = listed_kind.handler, ObservedObject.objects.all()
    items = listed_kind.listing.items
    changes = storage.compare(context.cluster.pk, handler.kind, listed_kind.observed_rows, items)
    replaced = storage.find_replaced(changes.absent, items)
    if changes.absent:
        ingest.require_definition(context, listed_kind.read)
    gone = sorted({*changes.gone, *replaced})
    missed = sorted({*changes.missed} - {*replaced})
    kind_counts.changed, kind_counts.gone = len(changes.new) + len(changes.changed), len(gone)
    if changes.reappeared or missed:
        with context.transaction():
            rows.filter(pk__in=changes.reappeared).update(missed_at=None)
            rows.filter(pk__in=missed).update(missed_at=Now())
    kind_counts.failed += ingest.ingest(context, handler, listed_kind.read, changes.new, new=True)
    kind_counts.failed += ingest.ingest(context, handler, listed_kind.read, changes.changed)
    kind_counts.failed += ingest.retry(context, handler, changes.retry)
    kind_counts.failed += ingest.forget(context, handler, gone)


def _apply_all(
    context: SyncContext, listed: Sequence[_ListedKind], counts: dict[str, KindCounts]
) -> None:
    for listed_kind in listed:
        kind_counts = counts[listed_kind.handler.kind]
        if not kind_counts.code:
            with isolate_kind(kind_counts, listed_kind.handler.kind):
                apply.apply_desired(context, listed_kind.handler, kind_counts)
