"""How the connection to a cluster stands, in words that a person understands.

Worked out of what the last passes left behind, in this one place: lists, pages, API and command say
the same.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta

STALE_AFTER = timedelta(minutes=30)  # three full passes


class ConnectionState(enum.Enum):
    """The state's word; its level is good, quiet (nothing to do), warn or bad."""

    NEVER_SYNCED = "never synced", "quiet"
    HEALTHY = "healthy", "good"
    STALE = "stale", "warn"
    UNAUTHORIZED = "unauthorized", "bad"
    UNREACHABLE = "unreachable", "bad"
    FORBIDDEN = "forbidden", "bad"
    CRD_MISSING = "CRD missing", "bad"
    INCOMPLETE = "incomplete", "warn"
    IDENTITY_CHANGED = "identity changed", "bad"
    FAILING = "failing", "bad"  # any other fault
    PAUSED = "paused", "quiet"

    def __init__(self, word: str, level: str) -> None:
        self.word = word
        self.level = level

    @property
    def key(self) -> str:
        """The word as an identifier: `never-synced`."""
        return self.word.lower().replace(" ", "-")


@dataclass(frozen=True)
class Facts:
    """What passes left behind: the last full success, the last fault ("" after a success).

    `failed_objects` could not be taken in or written. `tried_at` is when the last full pass began;
    `running` says that somebody works on the cluster.
    """

    paused: bool
    succeeded_at: datetime | None
    error_code: str = ""
    error: str = ""
    failures: int = 0  # in a row
    failed_objects: int = 0
    tried_at: datetime | None = None
    running: bool = False


@dataclass(frozen=True)
class ConnectionStatus:
    """The state, and in a sentence or two what it means and what to do."""

    state: ConnectionState
    sentence: str


_OF_CODE = {
    "cluster_unauthorized": ConnectionState.UNAUTHORIZED,
    "cluster_unreachable": ConnectionState.UNREACHABLE,
    "cluster_tls": ConnectionState.UNREACHABLE,
    "url_not_allowed": ConnectionState.UNREACHABLE,
    "cluster_forbidden": ConnectionState.FORBIDDEN,
    "crd_missing": ConnectionState.CRD_MISSING,
    "identity_changed": ConnectionState.IDENTITY_CHANGED,
}
_SENTENCES = {
    ConnectionState.NEVER_SYNCED: "No full pass has ended yet; a worker begins one within seconds.",
    ConnectionState.HEALTHY: "The last full pass succeeded.",
    ConnectionState.STALE: "No full pass has ended for over half an hour, and none failed: is a worker running?",
    ConnectionState.UNAUTHORIZED: "The API server does not accept the credentials: replace them.",
    ConnectionState.UNREACHABLE: "The API server cannot be reached; it is tried again, less and less often.",
    ConnectionState.FORBIDDEN: "The credentials lack a right: test the connection to see which.",
    ConnectionState.CRD_MISSING: "The cluster does not serve a kind that is to be written to it.",
    ConnectionState.INCOMPLETE: "The last full pass could not take in or write some objects; all others are"
    " up to date. The list of the cluster's objects and its differences say which, and why.",
    ConnectionState.IDENTITY_CHANGED: "Another cluster answers at this address. Nothing is read or written:"
    " correct the address, or disconnect this cluster and connect the other.",
    ConnectionState.FAILING: "The last pass failed; it is tried again, less and less often.",
    ConnectionState.PAUSED: "Somebody paused it: nothing is read or written until it is resumed.",
}


_ENDED_WITHOUT_RESULT = (
    "The last pass was stopped before it ended, or its worker died; it is tried again."
)


def describe(facts: Facts, now: datetime) -> ConnectionStatus:
    """The state at that moment. A pause hides the fault before it, which is told all the same."""
    state = _state(facts, now)
    sentence = _SENTENCES[state]
    if state in {ConnectionState.HEALTHY, ConnectionState.INCOMPLETE} and _is_later(facts):
        sentence += " The next one is running."
    if state == ConnectionState.FAILING and not facts.error_code:
        sentence = _ENDED_WITHOUT_RESULT
    if facts.error and facts.error_code:
        sentence += f" Last fault: {facts.error}"
    return ConnectionStatus(state, sentence)


def _state(facts: Facts, now: datetime) -> ConnectionState:
    if facts.paused:
        return ConnectionState.PAUSED
    if facts.error_code:
        return _OF_CODE.get(facts.error_code, ConnectionState.FAILING)
    if _is_later(facts) and not facts.running:
        return ConnectionState.FAILING
    if facts.succeeded_at is None:
        return ConnectionState.NEVER_SYNCED
    if now - facts.succeeded_at > STALE_AFTER:
        return ConnectionState.STALE
    return ConnectionState.INCOMPLETE if facts.failed_objects else ConnectionState.HEALTHY


def _is_later(facts: Facts) -> bool:
    """Return True if a full pass began after the last one that succeeded had ended."""
    succeeded, tried = facts.succeeded_at, facts.tried_at
    return tried is not None and (succeeded is None or tried > succeeded)
