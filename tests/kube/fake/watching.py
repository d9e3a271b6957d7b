"""The events of a watch, as lines."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from tests.kube.fake import refusals
from tests.kube.fake.kinds import Kind
from tests.kube.fake.selectors import Test
from tests.kube.fake.store import Event, Shelf, Store, Stored, encode, too_old


def line(kind: str, item: bytes) -> bytes:
    return b'{"type":"' + kind.encode() + b'","object":' + item + b"}\n"


def error(refused: refusals.Refused) -> bytes:
    return line("ERROR", encode(refused.status()))


@dataclass
class Watch:
    """One watch; `open` is asked at every step, so that the server can end it."""

    store: Store
    kind: Kind
    version: str
    namespace: str
    test: Test | None
    since: int
    seconds: float
    bookmarks: bool
    ended: Any  # a threading.Event
    bookmark_seconds: float = 60

    def lines(self) -> Iterator[bytes]:
        """Until the time is over, the kind is gone or the server ends it; some are empty."""
        until = time.monotonic() + self.seconds
        shelf = self.store.shelf(self.kind)
        with self.store.changed:
            if self.since and self.since < shelf.oldest:
                yield error(too_old(self.since, shelf.oldest))
                return
            bookmarks = self.store.bookmarks
            start = self._start()
        yield from start
        next_bookmark = time.monotonic() + self.bookmark_seconds
        while not self.ended.is_set() and self.store.shelf(self.kind) is shelf:
            with self.store.changed:
                events = self._wait(shelf, min(until, next_bookmark), bookmarks)
                current = self.store.version
                expected = bookmarks != self.store.bookmarks or time.monotonic() >= next_bookmark
                bookmarks = self.store.bookmarks
            yield from map(self._line, events)
            over = time.monotonic() >= until
            if expected or over:
                next_bookmark = time.monotonic() + self.bookmark_seconds
                yield self._bookmark(current) if self.bookmarks else b""
            if over:
                return
            self.since = max(self.since, current)

    def _wait(self, shelf: Shelf, until: float, bookmarks: int) -> list[Event]:
        """What is new, at the latest when the time is over or a bookmark is wanted."""
        events = shelf.since(self.since)
        remaining = until - time.monotonic()
        if not events and remaining > 0 and bookmarks == self.store.bookmarks:
            self.store.changed.wait(remaining)
            events = shelf.since(self.since)
        return events

    def _start(self) -> list[bytes]:
        """Without a version, or with 0, everything that is there is ADDED first."""
        if self.since:
            return []
        page = self.store.page(self.kind, self.namespace, test=self.test)
        self.since = page.version
        return [line("ADDED", item.encoded(self.version)) for item in page.objects]

    def _seen(self, stored: Stored | None) -> bool:
        if stored is None or (self.namespace and stored.key[0] != self.namespace):
            return False
        return self.test is None or self.test(stored.item)

    def _line(self, event: Event) -> bytes:
        """Empty for what this watch does not select; leaving the selection is a deletion."""
        before, after = self._seen(event.before), self._seen(event.after) and not event.gone
        item = event.after
        if before and after:
            return line("MODIFIED", item.encoded(self.version))
        if after:
            return line("ADDED", item.encoded(self.version))
        if not before or event.before is None:
            return b""
        if not event.gone:  # the last state that was selected, with the version of the change
            last = event.before.item
            metadata = last["metadata"] | {"resourceVersion": str(event.version)}
            item = Stored(self.kind, last | {"metadata": metadata}, event.version)
        return line("DELETED", item.encoded(self.version))

    def _bookmark(self, version: int) -> bytes:
        metadata = {"resourceVersion": str(version), "creationTimestamp": None}
        return line(
            "BOOKMARK",
            encode(
                {
                    "kind": self.kind.kind,
                    "apiVersion": self.kind.api_version(self.version),
                    "metadata": metadata,
                }
            ),
        )
