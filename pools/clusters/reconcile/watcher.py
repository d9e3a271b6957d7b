"""The watcher: what happens in clusters reaches the register within seconds.

One thread for each kind of each cluster waits for its events (pools.clusters.reconcile.streams); a few others
take in what was told, and write what changed in the register, so that a cluster that hangs holds up
none but itself. The main thread looks every two seconds which clusters are its own
(pools.clusters.reconcile.watchers), begins and ends streams, and runs the full passes that nobody else has run for
a minute: without Redis they are late, not absent.
"""

from __future__ import annotations

import contextlib
import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import close_old_connections, connection

from pools.clusters.reconcile import (
    connecting,
    ingest,
    leases,
    sync,
    watch_events,
    watch_positions,
    watchers,
)
from pools.clusters.reconcile.handler import Handler
from pools.clusters.reconcile.streams import Stream
from pools.clusters.reconcile.watch_positions import Position
from pools.core import errors
from pools.models import Connection
from pools.platform.outbound import faults

TICK = 0.2  # seconds: what was told by then is taken in together
LOOK = 2
TAKERS = 8
LONGEST_PAUSE = 60
BOOKMARKS = 60  # seconds between two positions that are kept although nothing happened
OVERDUE = 60  # seconds after which a pass that nobody ran is ours
STEADY = 30  # seconds after which a stream was well

log = logging.getLogger(__name__)
Key = tuple[int, str]  # connection, kind


@dataclass
class _Watched:
    """One cluster: its streams by kind, and when it may be asked again."""

    share: watchers.Share
    streams: dict[str, Stream] = field(default_factory=dict)
    failures: dict[str, int] = field(default_factory=dict)
    not_before: dict[str, float] = field(default_factory=dict)
    kept_at: float = field(default_factory=time.monotonic)
    nudged: str = ""
    settled: str = ""  # the nudge that was answered last
    busy: bool = False  # one of the takers has it
    rest_until: float = 0

    def stop(self) -> None:
        for stream in self.streams.values():
            stream.stop()
        self.streams.clear()


class Watcher:
    """Watches its share of the clusters, at most `most`, until it is stopped."""

    def __init__(
        self,
        handlers: Sequence[Handler],
        *,
        most: int = 200,
        open_client: connecting.Open = connecting.client_for,
        got_on: Callable[[], None] = lambda: None,
    ) -> None:
        self._got_on = got_on
        self.name = leases.worker()
        self._handlers = handlers
        self._most = most
        self._open = open_client
        self._watched: dict[int, _Watched] = {}
        self._jobs: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self._wake = threading.Event()
        self._stopped = threading.Event()
        self._looked_at = 0.0
        self._helps = threading.Lock()  # held while a pass runs here

    def run(self) -> None:
        """Until `stop`; a database that is away is waited for."""
        for number in range(TAKERS):
            threading.Thread(target=self._work, daemon=True, name=f"taker {number}").start()
        while not self._stopped.is_set():
            self._got_on()
            try:
                close_old_connections()
                self._step()
            except ingest.DATABASE_AWAY as error:
                log.warning("the database is away: %s", error)
                self._stopped.wait(1)
            self._wake.wait(TICK if self._waiting() else LOOK)
            self._wake.clear()
            self._stopped.wait(TICK)
        for watched in self._watched.values():
            watched.stop()
        with contextlib.suppress(*ingest.DATABASE_AWAY):
            watchers.leave(self.name)

    def stop(self) -> None:
        self._stopped.set()
        self._wake.set()

    def _waiting(self) -> bool:
        return any(
            stream.waiting
            for watched in list(self._watched.values())
            for stream in watched.streams.values()
        )

    # --- which clusters, which streams ------------------------------------------------------------

    def _step(self) -> None:
        now = time.monotonic()
        if now - self._looked_at >= LOOK:
            self._looked_at = now
            self._look()
            self._help()
        for connection_id, watched in list(self._watched.items()):
            if not watched.busy and now >= watched.rest_until and self._has_work(watched, now):
                watched.busy = True
                self._jobs.put(lambda pk=connection_id, it=watched: self._take_in(pk, it))  # type: ignore[misc]

    def _look(self) -> None:
        shares = {share.connection_id: share for share in watchers.claim(self.name, self._most)}
        for connection_id, watched in list(self._watched.items()):
            share = shares.get(connection_id)
            if share is None or share.access != watched.share.access:
                watched.stop()
                del self._watched[connection_id]
        for connection_id, share in shares.items():
            watched = self._watched.setdefault(connection_id, _Watched(share))
            watched.nudged = share.nudged
            if not watched.busy:
                self._restart(watched, share)

    def _restart(self, watched: _Watched, share: watchers.Share) -> None:
        """A stream for each kind that a pass has listed, from there on."""
        for handler in self._handlers:
            kind, position = handler.kind, watch_positions.read(share.positions, handler.kind)
            stream = watched.streams.get(kind)
            if stream is not None and stream.ended and stream.waiting:
                continue  # is taken in first
            if stream is not None and (stream.ended or stream.stopped or position != stream.stored):
                self._ended(watched, kind, stream)
                stream = None
            if stream is None and position and time.monotonic() >= watched.not_before.get(kind, 0):
                self._begin(watched, handler, position)

    def _begin(self, watched: _Watched, handler: Handler, position: Position) -> None:
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
                        noticed=self._wake.set,
                    )
                    watched.streams[handler.kind] = stream
                    stream.start()

    def _ended(self, watched: _Watched, kind: str, stream: Stream) -> None:
        """It was overtaken, or it failed: then the next one waits, ever longer."""
        fault = None if stream.stopped else stream.fault
        stream.stop()
        del watched.streams[kind]
        if fault is None:
            return
        log.info("the watch of %s of %s: %s", kind, stream.connection.cluster, fault.code)
        self._pause(watched, kind, stream)
        if isinstance(fault, faults.Gone):
            watch_positions.move(watched.share.connection_id, kind, stream.stored, None)
        if isinstance(fault, faults.Gone) or watched.failures[kind] == 1:
            leases.nudge(stream.connection.cluster_id, patient=True)

    def _pause(self, watched: _Watched, kind: str, stream: Stream) -> None:
        steady = time.monotonic() - stream.began > STEADY
        failures = watched.failures[kind] = 1 if steady else watched.failures.get(kind, 0) + 1
        seconds = min(LONGEST_PAUSE, 2 ** min(failures, 10) / 2)
        jitter = random.uniform(0.75, 1.25)  # noqa: S311  # no secret
        watched.not_before[kind] = time.monotonic() + seconds * jitter

    # --- taking in --------------------------------------------------------------------------------

    def _work(self) -> None:
        while True:
            job = self._jobs.get()
            try:
                close_old_connections()
                job()
            except ingest.DATABASE_AWAY as error:
                log.warning("the database is away: %s", error)
            except Exception:
                log.exception("a job of the watcher failed")
            finally:
                connection.close()

    def _has_work(self, watched: _Watched, now: float) -> bool:
        if any(stream.waiting for stream in watched.streams.values()):
            return True
        if watched.nudged != watched.settled:
            return True
        return now - watched.kept_at > BOOKMARKS

    def _take_in(self, connection_id: int, watched: _Watched) -> None:
        began = time.monotonic()
        try:
            for kind, stream in list(watched.streams.items()):
                if stream.stopped:
                    continue
                if not stream.waiting:
                    self._keep(connection_id, kind, stream)
                elif not self._ingest_events(connection_id, kind, stream):
                    self._pause(watched, kind, stream)
            watched.kept_at = time.monotonic()
            if watched.nudged != watched.settled:
                self._settle(connection_id, watched)
        finally:
            # As long as it took: events that come without end leave half of the time to others.
            watched.rest_until = 2 * time.monotonic() - began
            watched.busy = False

    def _settle(self, connection_id: int, watched: _Watched) -> None:
        """Write what the register wants since it changed; what fails now is left to the full pass."""
        nudged = watched.nudged
        lease = leases.borrow(connection_id, self.name)
        if lease is not None:  # else a pass is running, which may have begun before the change
            watch_events.apply_register_changes(lease, self._handlers, open_client=self._open)
            watched.settled = nudged

    def _ingest_events(self, connection_id: int, kind: str, stream: Stream) -> bool:
        """False when it failed, and not because others have seen more."""
        lease = leases.borrow(connection_id, self.name)
        if lease is None:
            return True  # a pass is running; what it lists overtakes what was told
        batch = stream.take()
        if batch is None:
            leases.put_back(lease)
            return True
        events, to = batch
        done = False
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
            done = not (run.error_code or run.kinds[kind].get("code"))
            return done or run.error_code == watch_events.OVERTAKEN
        finally:
            if done:
                stream.stored = to
            else:
                stream.stop()

    def _keep(self, connection_id: int, kind: str, stream: Stream) -> None:
        """Bookmarks: so that whoever watches next need not begin long ago."""
        if stream.waiting or (batch := stream.take()) is None:
            return
        events, to = batch
        if not events and to == stream.stored:
            return
        if events or not watch_positions.move(connection_id, kind, stream.stored, to):
            stream.stop()
        else:
            stream.stored = to

    # --- passes that nobody runs ------------------------------------------------------------------

    def _help(self) -> None:
        overdue = leases.due(1, overdue=OVERDUE)
        if overdue and self._helps.acquire(blocking=False):
            self._jobs.put(lambda: self._pass(overdue[0]))

    def _pass(self, connection_id: int) -> None:
        try:
            lease = leases.take(connection_id, self.name, only_due=True)
            if lease is not None:
                with contextlib.suppress(errors.IpamError):
                    sync.run(lease, self._handlers, open_client=self._open)
        finally:
            self._helps.release()
