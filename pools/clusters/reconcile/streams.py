"""One kind of one cluster, watched by a thread that speaks to the cluster and never to the database."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from pools.clusters.client.api_client import ClusterClient, Manifest, WatchEvent
from pools.clusters.reconcile import comparison, connecting
from pools.clusters.reconcile.handler import BUGS
from pools.clusters.reconcile.watch_positions import Position
from pools.core import errors
from pools.core.kubernetes.resources import Resource
from pools.models import Connection

SECONDS = 300  # after which the server ends a watch, and we go on with the next one
MAX_OBJECTS = 20_000  # objects that changed and were not taken in: then a list is cheaper

log = logging.getLogger(__name__)


class Overflow(errors.IpamError):
    """More objects changed than are kept in memory."""

    code = "watch_overflow"


class Stream:
    """What happens to one kind after a position, collected until somebody takes it.

    It ends with a `fault`, or when it is stopped; the owner begins another one then. `stored` is where
    the register stands as far as this stream brought it.
    """

    def __init__(
        self,
        connection: Connection,
        resource: Resource,
        stored: Position,
        *,
        open_client: connecting.OpenClient,
        on_event: Callable[[], Any],
    ) -> None:
        self.connection = connection
        self.resource = resource
        self.stored = stored
        self.fault: errors.IpamError | None = None
        self.began = time.monotonic()
        self._open = open_client
        self._on_event = on_event
        self._version = stored.version
        self._pending_events: dict[str, tuple[str, Manifest]] = {}
        self._lock = threading.Lock()
        self._stopped = threading.Event()
        self._client: ClusterClient | None = None
        self._thread = threading.Thread(
            target=self._run, daemon=True, name=f"watch {connection.pk} {resource.plural}"
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """Let go of the cluster at once; what was not taken is dropped."""
        with self._lock:
            self._stopped.set()
            self._pending_events.clear()
        if self._client is not None:
            self._client.interrupt()

    @property
    def stopped(self) -> bool:
        return self._stopped.is_set()

    @property
    def ended(self) -> bool:
        """Nothing more will come."""
        return not self._thread.is_alive()

    @property
    def waiting(self) -> bool:
        """Whether there is something to be taken."""
        return bool(self._pending_events)

    def take(self) -> tuple[list[tuple[str, Manifest]], Position] | None:
        """What was told since the last time, of each object the last event; and up to where.

        Whoever does not bring the register there has to stop the stream: it does not tell it again.
        None when it was stopped: what it dropped must not be passed over.
        """
        with self._lock:
            if self._stopped.is_set():
                return None
            events, self._pending_events = list(self._pending_events.values()), {}
            return events, Position(self.stored.api_version, self._version)

    def _run(self) -> None:
        try:
            with self._open(self.connection) as client:
                self._client = client
                while not self._stopped.is_set():
                    self._watch(client)
        except errors.IpamError as error:
            self.fault = error
        except BUGS:
            log.exception("the watch of %s failed", self.resource.plural)
            self.fault = errors.IpamError("the watch failed; see the log of the watcher")
        self._on_event()

    def _watch(self, client: ClusterClient) -> None:
        began = time.monotonic()
        connecting.verify_identity(self.connection, client)
        seconds = SECONDS - random.randrange(SECONDS // 5)  # noqa: S311  # not all at once
        for event in client.watch(self.resource, self._version, seconds=seconds):
            if self._stopped.is_set():
                return
            self._add(event)
        if time.monotonic() - began < 1:
            # A server that ends each watch at once is not asked a thousand times a second.
            self._stopped.wait(1)

    def _add(self, event: WatchEvent) -> None:
        with self._lock:
            if event.type != "BOOKMARK":
                uid, _ = comparison.identity(event.object)
                # The last event of an object counts; its place is that of the last one, too.
                self._pending_events.pop(uid, None)
                self._pending_events[uid] = (event.type, event.object)
            self._version = event.resource_version or self._version
            if len(self._pending_events) > MAX_OBJECTS:
                raise Overflow
        if self._pending_events:
            self._on_event()
