"""What goes wrong on purpose."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

Effect = Literal[
    "",  # nothing but the delay, the call, or the status
    "hang",  # no answer until the server closes
    "cut",  # closed before the request is looked at
    "lost",  # done, and closed without an answer
    "cut-headers",  # done, closed after the headers
    "cut-body",  # done, closed in the middle of the body; a watch: in the middle of its first event
    "cut-chunk",  # done, in chunks, closed in the middle of one
    "stall",  # done, silent after half of the body, until the server closes
    "truncate",  # a complete answer whose JSON is cut short
    "html",  # 200 with a page
    "gzip",  # says gzip, is none
    "event",  # a watch: 200, then an ERROR event with the status
]


@dataclass
class Fault:
    """One rule; `verb` is that of RBAC (list, watch, patch …), `path` a regular expression."""

    verb: str = ""
    path: str = ""
    times: int | None = 1
    skip: int = 0
    status: int = 0
    reason: str = ""
    message: str = ""
    retry_after: int | None = None
    delay: float = 0
    effect: Effect = ""
    call: Callable[[], object] | None = None
    body: bytes | None = None

    def matches(self, verb: str, path: str) -> bool:
        return self.verb in {"", verb} and re.search(self.path, path) is not None


class Faults:
    """The rules of one server, tried in order; the first that matches is used up."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._rules: list[Fault] = []

    def add(
        self,
        *,
        verb: str = "",
        path: str = "",
        times: int | None = 1,
        skip: int = 0,
        status: int = 0,
        reason: str = "",
        message: str = "",
        retry_after: int | None = None,
        delay: float = 0,
        effect: Effect = "",
        call: Callable[[], object] | None = None,
        body: bytes | None = None,
    ) -> Fault:
        """Let the next matching requests go wrong, `times` of them (None: all) after `skip` good ones.

        `delay` is in seconds; `call` runs before the request is served; `body` is answered as it
        stands, as JSON, with the status or 200.
        """
        fault = Fault(
            verb, path, times, skip, status, reason, message, retry_after, delay, effect, call, body
        )
        with self._lock:
            self._rules.append(fault)
        return fault

    def clear(self) -> None:
        with self._lock:
            self._rules.clear()

    def take(self, verb: str, path: str) -> Fault | None:
        with self._lock:
            for rule in self._rules:
                if not rule.matches(verb, path):
                    continue
                if rule.skip:
                    rule.skip -= 1
                    continue
                if rule.times is not None:
                    rule.times -= 1
                    if rule.times <= 0:
                        self._rules.remove(rule)
                return rule
        return None
