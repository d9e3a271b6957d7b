"""The requests that a server got."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field


@dataclass
class Request:
    """One request; `status` is 0 while there is no answer, `seconds` how long it took."""

    verb: str
    method: str
    path: str
    query: dict[str, str]
    user: str
    user_agent: str
    content_type: str
    arrived_at: float
    body: bytes = field(repr=False)
    status: int = 0
    seconds: float = 0

    @property
    def writes(self) -> bool:
        """Whether it may change something that is stored."""
        asks = "/authorization.k8s.io/" in self.path
        if self.method == "DELETE" and self.body:
            return b'"dryRun"' not in self.body
        return self.method != "GET" and "dryRun" not in self.query and not asks


class Journal:
    """All requests in the order of their arrival."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: list[Request] = []

    def __iter__(self) -> Iterator[Request]:
        with self._lock:
            return iter(list(self._requests))

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: Request) -> None:
        with self._lock:
            self._requests.append(request)

    def clear(self) -> None:
        with self._lock:
            self._requests.clear()

    def select(self, verb: str = "", path: str = "") -> list[Request]:
        """Those of a verb of RBAC whose path contains this text."""
        return [item for item in self if verb in {"", item.verb} and path in item.path]

    @property
    def writes(self) -> list[Request]:
        return [item for item in self if item.writes]
