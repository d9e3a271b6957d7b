"""Watch streams: a thread for one kind of one cluster, without access to the database."""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Any

from pools.clusters.client.api_client import ClusterClient, WatchEvent
from pools.clusters.reconcile import connecting, storage
from pools.clusters.reconcile.handler import BUGS
from pools.clusters.reconcile.watchers import Position
from pools.core import errors
from pools.core.kubernetes.resources import Manifest, Resource
from pools.models import Connection

SECONDS = 300  # duration of one watch request; then the next one starts
MAX_OBJECTS = 20_000  # limit of collected objects; beyond it a list is cheaper

log = logging.getLogger(__name__)


class Overflow(errors.IpamError):
    """More objects changed than a stream collects."""

    code = "watch_overflow"


class Stream:
    """The watch events of one kind after a position, collected until `take`.

    A stream ends with a `fault`, or when it is stopped; then its owner starts another one. `stored` is the
    position up to which events of this stream were ingested.
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
        """Stop the watch at once and drop collected events."""
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
        """True if no further event will arrive."""
        return not self._thread.is_alive()

    @property
    def waiting(self) -> bool:
        """True if events are collected."""
        return bool(self._pending_events)

    def take(self) -> tuple[list[tuple[str, Manifest]], Position] | None:
        """Return the events since the last call, of each object the last one, and the new position.

        A caller that does not ingest them must stop the stream, because they are not returned again.
        None if the stream is stopped, because its dropped events must not be skipped.
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
            # Limits the requests to a server that ends each watch at once.
            self._stopped.wait(1)

    def _add(self, event: WatchEvent) -> None:
        with self._lock:
            if event.type != "BOOKMARK":
                uid, _ = storage.identity(event.object)
                # The last event of an object counts, at the position of the last event.
                self._pending_events.pop(uid, None)
                self._pending_events[uid] = (event.type, event.object)
            self._version = event.resource_version or self._version
            if len(self._pending_events) > MAX_OBJECTS:
                raise Overflow
        if self._pending_events:
            self._on_event()
