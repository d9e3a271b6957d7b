"""The watcher: changes in clusters reach the register within seconds.

One thread for each kind of each cluster receives its events (pools.clusters.reconcile.streams). A few worker
threads ingest the events and write changes of the register, so that a cluster that hangs delays no other
one. The main thread reads its share of the clusters every two seconds (pools.clusters.reconcile.watchers),
starts and stops streams, and runs full syncs that are overdue by a minute: without Redis they are late,
but not lost.
"""

import contextlib
import functools
import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import close_old_connections, connection

from pools.clusters.reconcile import connecting, ingest, leases, sync, watch_events, watchers
from pools.clusters.reconcile.handler import Handler
from pools.clusters.reconcile.streams import Stream
from pools.clusters.reconcile.watchers import Position
from pools.core import errors
from pools.models import Connection
from pools.platform.outbound import faults

TICK = 0.2  # seconds during which events are collected into one ingest
SHARE_INTERVAL = 2  # seconds between two reads of the share
WORKERS = 8
LONGEST_PAUSE = 60  # seconds; limit of the back-off of a stream
BOOKMARK_INTERVAL = 60  # seconds between two stored positions without events
POLL_INTERVAL = 60  # seconds between two reads of kinds that are polled
OVERDUE = 60  # seconds after which the watcher runs an overdue sync
STEADY_AFTER = 30  # seconds after which a stream counts as healthy

log = logging.getLogger(__name__)
Key = tuple[int, str]  # connection, kind


@dataclass
class _WatchedCluster:
    """One cluster: its streams and back-off by kind."""

    share: watchers.Share
    streams: dict[str, Stream] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    not_before: dict[str, float] = field(default_factory=dict)
    bookmarked_at: float = field(default_factory=time.monotonic)
    polled_at: float = field(default_factory=time.monotonic)
    nudged: str = ""
    applied_nudge: str = ""  # the last nudge whose changes were written
    busy: bool = False  # a worker thread processes it
    rest_until: float = 0

    def stop(self) -> None:
        for stream in self.streams.values():
            stream.stop()
        self.streams.clear()


class Watcher:
    """Watches its share of the clusters, at most `max_clusters`, until it is stopped."""

    def __init__(
        self,
        handlers: Sequence[Handler],
        *,
        max_clusters: int = 200,
        open_client: connecting.OpenClient = connecting.client_for,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        self._on_progress = on_progress
        self.name = leases.worker_name()
        self._handlers = handlers
        self._max_clusters = max_clusters
        self._open = open_client
        self._watched: dict[int, _WatchedCluster] = {}
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._shares_read_at = 0.0
        self._full_sync_lock = threading.Lock()  # held while a full sync runs in this process

    def run(self) -> None:
        """Run until `stop`; wait for a database that is unavailable."""
        for number in range(WORKERS):
            threading.Thread(target=self._work, daemon=True, name=f"ingest worker {number}").start()
        while not self._stopped.is_set():
            self._on_progress()
            try:
                close_old_connections()
                self._step()
            except ingest.DATABASE_AWAY as error:
                log.warning("the database is unavailable: %s", error)
                self._stopped.wait(1)
            self._wake.wait(TICK if self._has_waiting_events() else SHARE_INTERVAL)
            self._wake.clear()
            self._stopped.wait(TICK)
        for watched in self._watched.values():
            watched.stop()
        with contextlib.suppress(*ingest.DATABASE_AWAY):
            watchers.leave(self.name)

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()

    def _has_waiting_events(self) -> bool:
        return any(
            stream.waiting
            for watched in list(self._watched.values())
            for stream in watched.streams.values()
        )

    # --- which clusters, which streams ------------------------------------------------------------

    def _step(self) -> None:
        now = time.monotonic()
        if now - self._shares_read_at >= SHARE_INTERVAL:
            self._shares_read_at = now
            self._update_shares()
            self._run_overdue_sync()
        for connection_id, watched in list(self._watched.items()):
            if not watched.busy and now >= watched.rest_until and self._has_work(watched, now):
                watched.busy = True
                self._jobs.put(functools.partial(self._process, connection_id, watched))

    def _update_shares(self) -> None:
        shares = {
            share.connection_id: share for share in watchers.claim(self.name, self._max_clusters)
        }
        for connection_id, watched in list(self._watched.items()):
            share = shares.get(connection_id)
            if share is None or share.access != watched.share.access:
                watched.stop()
                del self._watched[connection_id]
        for connection_id, share in shares.items():
            watched = self._watched.setdefault(connection_id, _WatchedCluster(share))
            watched.nudged = share.nudged
            if not watched.busy:
                self._update_streams(watched, share)

    def _update_streams(self, watched: _WatchedCluster, share: watchers.Share) -> None:
        """Start a stream from the position of each kind; replace ended and overtaken streams."""
        for handler in self._handlers:
            kind, position = handler.kind, watchers.read(share.positions, handler.kind)
            stream = watched.streams.get(kind)
            if stream is not None and stream.ended and stream.waiting:
                continue  # its events are ingested first
            if stream is not None and (stream.ended or stream.stopped or position != stream.stored):
                self._end_stream(watched, kind, stream)
                stream = None
            if stream is None and position and time.monotonic() >= watched.not_before.get(kind, 0):
                self._begin_stream(watched, handler, position)

    def _begin_stream(self, watched: _WatchedCluster, handler: Handler, position: Position) -> None:
        for resource in handler.resources:
            if resource.api_version == position.api_version:
                row = Connection.objects.select_related("cluster").filter(
                    pk=watched.share.connection_id
                )
                for connection_row in row:
                    stream = Stream(
                        connection_row,
                        resource,
                        position,
                        open_client=self._open,
                        on_event=self._wake.set,
                    )
                    watched.streams[handler.kind] = stream
                    stream.start()

    def _end_stream(self, watched: _WatchedCluster, kind: str, stream: Stream) -> None:
        """Remove a stream that was overtaken or failed; after a failure, back off."""
        fault = None if stream.stopped else stream.fault
        stream.stop()
        del watched.streams[kind]
        if fault is None:
            return
        log.info("the watch of %s of %s: %s", kind, stream.connection.cluster, fault.code)
        self._back_off(watched, kind, stream)
        if isinstance(fault, faults.Gone):
            watchers.move(watched.share.connection_id, kind, stream.stored, None)
        if isinstance(fault, faults.Gone) or watched.failures[kind] == 1:
            leases.nudge(stream.connection.cluster_id, patient=True)

    def _back_off(self, watched: _WatchedCluster, kind: str, stream: Stream) -> None:
        steady = time.monotonic() - stream.began > STEADY_AFTER
        failures = watched.failures[kind] = 1 if steady else watched.failures.get(kind, 0) + 1
        seconds = min(LONGEST_PAUSE, 2 ** min(failures, 10) / 2)
        jitter = random.uniform(0.75, 1.25)  # noqa: S311  # no secret
        watched.not_before[kind] = time.monotonic() + seconds * jitter

    # --- ingest --------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                close_old_connections()
                job()
            except ingest.DATABASE_AWAY as error:
                log.warning("the database is unavailable: %s", error)
            except Exception:
                log.exception("a job of the watcher failed")
            finally:
                connection.close()

    def _has_work(self, watched: _WatchedCluster, now: float) -> bool:
        if any(stream.waiting for stream in watched.streams.values()):
            return True
        if watched.nudged != watched.applied_nudge:
            return True
        return (
            now - watched.bookmarked_at > BOOKMARK_INTERVAL
            or now - watched.polled_at > POLL_INTERVAL
        )

    def _process(self, connection_id: int, watched: _WatchedCluster) -> None:
        began = time.monotonic()
        try:
            for kind, stream in list(watched.streams.items()):
                if stream.stopped:
                    continue
                if not stream.waiting:
                    self._store_bookmark(connection_id, kind, stream)
                elif not self._ingest_events(connection_id, kind, stream):
                    self._back_off(watched, kind, stream)
            watched.bookmarked_at = time.monotonic()
            if watched.nudged != watched.applied_nudge:
                self._apply_register_changes(connection_id, watched)
            if began - watched.polled_at > POLL_INTERVAL:
                self._poll(connection_id, watched)
        finally:
            # Rest as long as the work took, so that endless events leave half of the time to others.
            watched.rest_until = 2 * time.monotonic() - began
            watched.busy = False

    def _apply_register_changes(self, connection_id: int, watched: _WatchedCluster) -> None:
        """Write changes of the register; failures are left to the full sync."""
        nudged = watched.nudged
        lease = leases.borrow(connection_id, self.name)
        if lease is not None:  # else a sync is running, which may have started before the change
            watch_events.apply_register_changes(lease, self._handlers, open_client=self._open)
            watched.applied_nudge = nudged

    def _poll(self, connection_id: int, watched: _WatchedCluster) -> None:
        connection_row = Connection.objects.filter(pk=connection_id, paused=False).first()
        if connection_row and any(each.is_polled(connection_row) for each in self._handlers):
            lease = leases.borrow(connection_id, self.name)
            if lease is not None:  # else a full sync is running, which reads all kinds
                watch_events.poll(lease, self._handlers, open_client=self._open)
        watched.polled_at = time.monotonic()

    def _ingest_events(self, connection_id: int, kind: str, stream: Stream) -> bool:
        """Ingest the events of a stream; return False if that failed, unless the stream was overtaken."""
        lease = leases.borrow(connection_id, self.name)
        if lease is None:
            return True  # a sync is running; its lists overtake these events
        batch = stream.take()
        if batch is None:
            leases.release(lease)
            return True
        events, to = batch
        succeeded = False
        try:
            run = watch_events.ingest_events(
                lease,
                self._handlers,
                kind,
                events,
                position=stream.stored,
                to=to,
                open_client=self._open,
            )
            succeeded = not (run.error_code or run.kinds[kind].get("code"))
            return succeeded or run.error_code == watch_events.OVERTAKEN
        finally:
            if succeeded:
                stream.stored = to
            else:
                stream.stop()

    def _store_bookmark(self, connection_id: int, kind: str, stream: Stream) -> None:
        """Store the position of a stream without events, so that the next watch starts from there."""
        if stream.waiting or (batch := stream.take()) is None:
            return
        events, to = batch
        if not events and to == stream.stored:
            return
        if events or not watchers.move(connection_id, kind, stream.stored, to):
            stream.stop()
        else:
            stream.stored = to

    # --- overdue syncs ------------------------------------------------------------------

    def _run_overdue_sync(self) -> None:
        overdue = leases.due_connections(1, overdue=OVERDUE)
        if overdue and self._full_sync_lock.acquire(blocking=False):
            self._jobs.put(functools.partial(self._run_full_sync, overdue[0]))

    def _run_full_sync(self, connection_id: int) -> None:
        try:
            lease = leases.take(connection_id, self.name, only_due=True)
            if lease is not None:
                with contextlib.suppress(errors.IpamError):
                    sync.run(lease, self._handlers, open_client=self._open)
        finally:
            self._full_sync_lock.release()
