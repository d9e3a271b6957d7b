"""Ingest of watch events, and prompt writes of register changes, between full syncs."""

import contextlib
import dataclasses
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence

from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import (
    apply,
    connecting,
    ingest,
    leases,
    storage,
    sync,
    sync_runs,
    watchers,
)
from pools.clusters.reconcile.handler import Handler, SyncContext, projection_for
from pools.clusters.reconcile.sync_runs import KindCounts
from pools.clusters.reconcile.watchers import Position
from pools.core.kubernetes.resources import Manifest
from pools.models import Connection, ObservedObject, SyncRun
from pools.platform import database
from pools.platform.leases import Lease
from pools.platform.outbound import faults

OVERTAKEN = "events_overtaken"


def ingest_events(
    lease: Lease,
    handlers: Sequence[Handler],
    kind: str,
    events: Iterable[tuple[str, Manifest]],
    *,
    position: Position,
    to: Position,
    open_client: connecting.OpenClient = connecting.client_for,
) -> SyncRun:
    """Ingest watch events of one kind, as (type, object) in order, and apply the resulting writes.

    The events are all events between two positions. If the kind is at another position by now (a list
    or another watcher is ahead), nothing is done and the error of the run is `events_overtaken`. Of
    several events of one object the last one counts. A DELETED event ends the object with its uid.
    Releases the lease; the sync run is stored only if it changed something or failed.
    """
    connection = Connection.objects.select_related("cluster").get(pk=lease.row_id)
    record = sync_runs.watch_run(connection.cluster, database.now())
    if not watchers.is_current(connection.pk, kind, position):
        leases.release(lease)
        record.error_code = OVERTAKEN
        return record
    (handler,) = [handler for handler in handlers if handler.kind == kind]
    events_by_uid = {storage.identity(manifest)[0]: (type_, manifest) for type_, manifest in events}
    events_by_uid = {uid: _project_event(handler, *event) for uid, event in events_by_uid.items()}
    counts = {kind: KindCounts(seen=len(events_by_uid))}
    with sync.record_outcome(lease, record, counts, full=False):
        with leases.renew_in_background(lease), open_client(connection) as client:
            context = _make_context(connection, client, lease, events_by_uid.values())
            _mark_served(context, handler, to)
            with sync.isolate_kind(counts[kind], kind):
                if _ingest_changes(context, handler, events_by_uid, counts[kind]):
                    apply.apply_desired(context, handler, counts[kind])
            if counts[kind].changed or counts[kind].gone:
                _apply_each(context, _followers(context, kind, handlers), counts)
        if not counts[kind].code:
            with context.transaction():
                watchers.move(connection.pk, kind, position, to)
    return record


def poll(
    lease: Lease,
    handlers: Sequence[Handler],
    *,
    open_client: connecting.OpenClient = connecting.client_for,
) -> SyncRun:
    """Read the polled kinds of a cluster, and apply what follows from a change.

    Deletions, and kinds that cannot be read, are left to the full sync. Releases the lease; the sync run is stored
    only if it changed something or failed.
    """

    def poll_kinds(
        connection: Connection, client: ClusterClient, counts: dict[str, KindCounts]
    ) -> None:
        for handler in handlers:
            if handler.is_polled(connection):
                with contextlib.suppress(faults.Forbidden, faults.NotFound, faults.KindNotServed):
                    _poll_kind(connection, client, lease, handler, handlers, counts)

    return _run(lease, open_client, poll_kinds)


def _poll_kind(
    connection: Connection,
    client: ClusterClient,
    lease: Lease,
    handler: Handler,
    handlers: Sequence[Handler],
    counts: dict[str, KindCounts],
) -> None:
    (resource,) = handler.resources
    listing = client.list(resource, project=projection_for(handler))
    events_by_uid = {
        storage.identity(manifest)[0]: ("MODIFIED", manifest) for manifest in listing.items
    }
    context = _make_context(connection, client, lease, events_by_uid.values())
    context.served[handler.kind] = resource
    counts[handler.kind] = KindCounts(seen=len(events_by_uid))
    with sync.isolate_kind(counts[handler.kind], handler.kind):
        if _ingest_changes(context, handler, events_by_uid, counts[handler.kind]):
            _apply_each(context, _followers(context, handler.kind, handlers), counts)


def _followers(context: SyncContext, kind: str, handlers: Sequence[Handler]) -> list[Handler]:
    return [
        follower
        for follower in handlers
        if kind in follower.follows and follower.is_affected(context)
    ]


def apply_register_changes(
    lease: Lease,
    handlers: Sequence[Handler],
    *,
    open_client: connecting.OpenClient = connecting.client_for,
) -> SyncRun:
    """Apply the writes that a change of the register requires, for `prompt` kinds, without a list.

    Releases the lease; the sync run is stored only if it changed something or failed.
    """

    def apply_prompt(
        connection: Connection, client: ClusterClient, counts: dict[str, KindCounts]
    ) -> None:
        context = _make_context(connection, client, lease, ())
        prompt = [handler for handler in handlers if handler.prompt]
        _apply_each(context, prompt, counts)

    return _run(lease, open_client, apply_prompt)


def _run(
    lease: Lease,
    open_client: connecting.OpenClient,
    work: Callable[[Connection, ClusterClient, dict[str, KindCounts]], None],
) -> SyncRun:
    """Work on a cluster under the lease, which is released, and return the run with its outcome."""
    connection = Connection.objects.select_related("cluster").get(pk=lease.row_id)
    record = sync_runs.watch_run(connection.cluster, database.now())
    counts: dict[str, KindCounts] = {}
    with (
        sync.record_outcome(lease, record, counts, full=False),
        leases.renew_in_background(lease),
        open_client(connection) as client,
    ):
        work(connection, client, counts)
    return record


def _make_context(
    connection: Connection,
    client: ClusterClient,
    lease: Lease,
    events: Iterable[tuple[str, Manifest]],
) -> SyncContext:
    changed_keys = frozenset(storage.object_key(manifest) for _, manifest in events)
    context = sync.make_context(
        connection, client, lease, from_watch=True, changed_keys=changed_keys
    )

    # The watch has verified the identity on its own connection. This connection is opened only for writes.
    @functools.cache
    def verify_once() -> str:
        return connecting.verify_identity(connection, client)

    def prove() -> None:
        verify_once()
        leases.prove(lease)

    return dataclasses.replace(context, prove=prove)


def _project_event(handler: Handler, type_: str, manifest: Manifest) -> tuple[str, Manifest]:
    """Return the projected event; an object that is no longer relevant counts as DELETED."""
    projection = projection_for(handler)
    if projection is None or type_ == "DELETED":
        return type_, manifest
    projected = projection(manifest)
    return ("DELETED", manifest) if projected is None else (type_, projected)


def _mark_served(context: SyncContext, handler: Handler, position: Position | None) -> bool:
    """Mark the kind as served and complete in the context; return False if it has no position."""
    for version in handler.resources:
        if position is not None and version.api_version == position.api_version:
            context.served[handler.kind] = version
            context.complete.add(handler.kind)
            return True
    return False


def _ingest_changes(
    context: SyncContext,
    handler: Handler,
    events_by_uid: Mapping[str, tuple[str, Manifest]],
    kind_counts: KindCounts,
) -> bool:
    """Ingest changed and deleted objects; return False if there are none, as after our own writes.

    Raises KindNotServed for objects that a server deletes together with their definition.
    """
    rows = {
        uid: (pk, version)
        for uid, pk, version in ObservedObject.objects.filter(
            cluster=context.cluster, kind=handler.kind, uid__in=list(events_by_uid)
        ).values_list("uid", "pk", "resource_version")
    }
    gone = [
        rows[uid][0]
        for uid, (type_, _) in events_by_uid.items()
        if type_ == "DELETED" and uid in rows
    ]
    read = context.served[handler.kind]
    if gone:
        ingest.require_definition(context, read)
    changed_manifests = [
        manifest
        for uid, (type_, manifest) in events_by_uid.items()
        if type_ != "DELETED" and (uid not in rows or rows[uid][1] != storage.identity(manifest)[1])
    ]
    kind_counts.changed, kind_counts.gone = len(changed_manifests), len(gone)
    kind_counts.failed += ingest.ingest(context, handler, read, changed_manifests)
    kind_counts.failed += ingest.forget(context, handler, gone)
    return bool(changed_manifests or gone)


def _apply_each(
    context: SyncContext, handlers: Sequence[Handler], counts: dict[str, KindCounts]
) -> None:
    for handler in handlers:
        position = watchers.read(context.connection.positions, handler.kind)
        if _mark_served(context, handler, position):
            kind_counts = counts[handler.kind] = KindCounts()
            with sync.isolate_kind(kind_counts, handler.kind):
                apply.apply_desired(context, handler, kind_counts)
