"""What is stored: objects with their encoded bytes, one counter of versions, a history per kind."""

from __future__ import annotations

import base64
import binascii
import bisect
import json
import threading
from dataclasses import dataclass, field
from typing import Any

from tests.kube.fake import refusals, schema
from tests.kube.fake.kinds import Kind
from tests.kube.fake.selectors import Test

Key = tuple[str, str]
_HISTORY = 50_000
_CONTINUE_GONE = (
    "The provided continue parameter is too old to display a consistent list result. You can start a"
    " new list without the continue parameter, or use the continue token in this response to retrieve"
    " the remainder of the results."
)


def encode(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


def convert(item: dict[str, Any], kind: Kind, version: str) -> dict[str, Any]:
    """The object in another version: strategy None, so only apiVersion changes, and what that
    version does not know is dropped."""
    if item["apiVersion"] == kind.api_version(version):
        return item
    pruned: dict[str, Any] = schema.prune(item, kind.schemas[version], dropped=[])
    return pruned | {"apiVersion": kind.api_version(version)}


@dataclass(eq=False)
class Stored:
    """One state of one object; never changed, so readers need no lock."""

    kind: Kind
    item: dict[str, Any]
    version: int
    _encoded: dict[tuple[str, bool], bytes] = field(default_factory=dict)

    @property
    def key(self) -> Key:
        metadata = self.item["metadata"]
        return metadata.get("namespace", ""), metadata["name"]

    def read(self, version: str) -> dict[str, Any]:
        return convert(self.item, self.kind, version)

    def encoded(self, version: str, *, listed: bool = False) -> bytes:
        """JSON; items of lists of built-in kinds have no apiVersion and kind."""
        bare = listed and self.kind.builtin
        if (version, bare) not in self._encoded:
            item = self.read(version)
            if bare:
                item = {k: v for k, v in item.items() if k not in {"apiVersion", "kind"}}
            self._encoded[version, bare] = encode(item)
        return self._encoded[version, bare]


@dataclass(frozen=True)
class Event:
    """One change: the state before (None: created) and after (`gone`: its last, with the version
    of its deletion)."""

    version: int
    before: Stored | None
    after: Stored
    gone: bool = False


@dataclass
class Shelf:
    """The objects of one kind, in the order of their keys, and what happened to them."""

    kind: Kind
    objects: dict[Key, Stored] = field(default_factory=dict)
    keys: list[Key] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    oldest: int = 0
    """Versions before this one are forgotten."""

    def record(self, event: Event) -> None:
        key = event.after.key
        if event.gone:
            del self.objects[key]
            del self.keys[bisect.bisect_left(self.keys, key)]
        else:
            if event.before is None:
                bisect.insort(self.keys, key)
            self.objects[key] = event.after
        self.events.append(event)
        if len(self.events) > _HISTORY:
            self.oldest = self.events[_HISTORY // 2 - 1].version
            del self.events[: _HISTORY // 2]

    def since(self, version: int) -> list[Event]:
        return self.events[bisect.bisect_right(self.events, version, key=lambda e: e.version) :]


@dataclass(frozen=True)
class Page:
    """Objects, the version of the whole list, the token of the next page, how many remain."""

    objects: list[Stored]
    version: int
    token: str
    remaining: int | None


def too_old(version: int, oldest: int) -> refusals.Refused:
    return refusals.expired(f"too old resource version: {version} ({oldest})")


class Store:
    """All shelves, under one lock whose condition wakes the watchers."""

    def __init__(self) -> None:
        self.changed = threading.Condition(threading.RLock())
        self.version = 1
        self.bookmarks = 0
        self._shelves: dict[tuple[str, str], Shelf] = {}

    def shelf(self, kind: Kind) -> Shelf:
        with self.changed:
            return self._shelves.setdefault(kind.key, Shelf(kind))

    def redefine(self, kind: Kind) -> None:
        """The definition of a kind changed; its objects are read through the new one."""
        with self.changed:
            shelf = self.shelf(kind)
            shelf.kind = kind
            for key, stored in shelf.objects.items():
                shelf.objects[key] = Stored(kind, stored.item, stored.version)

    def drop(self, kind: Kind) -> None:
        """Forget a kind with all its objects, as when its definition is deleted."""
        with self.changed:
            self._shelves.pop(kind.key, None)
            self.changed.notify_all()

    def get(self, kind: Kind, name: str, namespace: str = "") -> Stored | None:
        return self.shelf(kind).objects.get((namespace, name))

    def write(self, kind: Kind, item: dict[str, Any]) -> Stored:
        """Store a state under a new version; the caller holds the lock since it read the object."""
        with self.changed:
            self.version += 1
            item["metadata"]["resourceVersion"] = str(self.version)
            after = Stored(kind, item, self.version)
            shelf = self.shelf(kind)
            shelf.record(Event(self.version, shelf.objects.get(after.key), after))
            self.changed.notify_all()
            return after

    def delete(self, stored: Stored) -> Stored:
        """The last state, with the version of its deletion."""
        with self.changed:
            self.version += 1
            metadata = stored.item["metadata"] | {"resourceVersion": str(self.version)}
            last = Stored(stored.kind, stored.item | {"metadata": metadata}, self.version)
            self.shelf(stored.kind).record(Event(self.version, stored, last, gone=True))
            self.changed.notify_all()
            return last

    def forget(self) -> None:
        """Compact: continue tokens and versions of before now are answered with 410."""
        with self.changed:
            self.version += 1
            for shelf in self._shelves.values():
                shelf.events.clear()
                shelf.oldest = self.version

    def page(
        self,
        kind: Kind,
        namespace: str,
        *,
        limit: int = 0,
        token: str = "",
        test: Test | None = None,
    ) -> Page:
        """A page of a consistent list."""
        with self.changed:
            shelf = self.shelf(kind)
            version, start = self._position(shelf, token)
            if version < shelf.oldest:
                raise too_old(version, shelf.oldest)
            objects, keys = self._at(shelf, version)
            first = bisect.bisect_right(keys, start) if start else 0
            end = len(keys)
            if namespace:
                first = max(first, bisect.bisect_left(keys, (namespace, "")))
                end = bisect.bisect_left(keys, (namespace + "\0", ""))
            last = min(first + limit, end) if limit and test is None else end
            chosen = [objects[key] for key in keys[first:last]]
        remaining: int | None = end - last
        if test is not None:
            chosen = [element for element in chosen if test(element.item)]
            remaining = None
            if limit and len(chosen) > limit:
                chosen, last = chosen[:limit], 0
        more = _token(version, chosen[-1].key) if last < end and chosen else ""
        return Page(chosen, version, more, remaining if more else None)

    def _position(self, shelf: Shelf, token: str) -> tuple[int, Key | None]:
        if not token:
            return self.version, None
        try:
            read = json.loads(base64.urlsafe_b64decode(token))
            version, start = int(read["rv"]), (str(read["start"][0]), str(read["start"][1]))
        except (ValueError, KeyError, IndexError, TypeError, binascii.Error) as wrong:
            raise refusals.bad_request(f"continue key is not valid: {wrong}") from wrong
        if version == -1:
            return self.version, start
        if version < shelf.oldest:
            raise refusals.expired(_CONTINUE_GONE, **{"continue": _token(-1, start)})
        return version, start

    def _at(self, shelf: Shelf, version: int) -> tuple[dict[Key, Stored], list[Key]]:
        """The state at a version, by undoing what came later."""
        later = shelf.since(version)
        if not later:
            return shelf.objects, shelf.keys
        objects = dict(shelf.objects)
        for event in reversed(later):
            if event.before is None:
                del objects[event.after.key]
            else:
                objects[event.before.key] = event.before
        return objects, sorted(objects)


def _token(version: int, start: Key) -> str:
    text = json.dumps({"v": "meta.k8s.io/v1", "rv": version, "start": list(start)})
    return base64.urlsafe_b64encode(text.encode()).decode()
