"""The status of the connection to a cluster, computed from the results of its last sync runs.

Lists, pages, the API and commands use this module, so that they show the same status.
"""

import enum
from dataclasses import dataclass
from datetime import datetime, timedelta


def gettext_noop(text: str) -> str:
    """Return the text; `manage.py makemessages` finds it, as with Django's function of this name."""
    return text


class ConnectionState(enum.Enum):
    """The label of a state, and its level: good, quiet (no action needed), warn or bad."""

    NEVER_SYNCED = gettext_noop("never synced"), "quiet"
    HEALTHY = gettext_noop("healthy"), "good"
    STALE = gettext_noop("stale"), "warn"
    UNAUTHORIZED = gettext_noop("unauthorized"), "bad"
    UNREACHABLE = gettext_noop("unreachable"), "bad"
    FORBIDDEN = gettext_noop("forbidden"), "bad"
    CRD_MISSING = gettext_noop("CRD missing"), "bad"
    INCOMPLETE = gettext_noop("incomplete"), "warn"
    IDENTITY_CHANGED = gettext_noop("identity changed"), "bad"
    FAILING = gettext_noop("failing"), "bad"  # any other error
    PAUSED = gettext_noop("paused"), "quiet"

    def __init__(self, word: str, level: str) -> None:
        self.word = word
        self.level = level

    @property
    def key(self) -> str:
        """The label as an identifier: `never-synced`."""
        return self.word.lower().replace(" ", "-")


@dataclass(frozen=True)
class ConnectionFacts:
    """Results of sync runs: time of the last full success, and the last error ("" after a success).

    `failed_objects` counts objects that could not be ingested or written. `tried_at` is the start of
    the last full sync. `running` is True while a worker holds the lease of the cluster.
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
    """The state, the sentences that explain it and what to do, and the last error ("" if it has none)."""

    state: ConnectionState
    sentences: tuple[str, ...]
    error: str = ""

    @property
    def sentence(self) -> str:
        """The sentences and the last error as one English text; pages translate it."""
        last_error = (f"Last error: {self.error}",) if self.error else ()
        return " ".join((*self.sentences, *last_error))


_STATE_BY_CODE = {
    "cluster_unauthorized": ConnectionState.UNAUTHORIZED,
    "cluster_unreachable": ConnectionState.UNREACHABLE,
    "cluster_tls": ConnectionState.UNREACHABLE,
    "url_not_allowed": ConnectionState.UNREACHABLE,
    "cluster_forbidden": ConnectionState.FORBIDDEN,
    "crd_missing": ConnectionState.CRD_MISSING,
    "identity_changed": ConnectionState.IDENTITY_CHANGED,
}
_SENTENCES = {
    ConnectionState.NEVER_SYNCED: gettext_noop(
        "No full sync has completed yet. A worker starts one within seconds."
    ),
    ConnectionState.HEALTHY: gettext_noop("The last full sync succeeded."),
    ConnectionState.STALE: gettext_noop(
        "A full sync is overdue, and none has failed. Check that a worker is running."
    ),
    ConnectionState.UNAUTHORIZED: gettext_noop(
        "The API server does not accept the credentials. Replace them."
    ),
    ConnectionState.UNREACHABLE: gettext_noop(
        "The API server cannot be reached. The sync is retried with increasing delays."
    ),
    ConnectionState.FORBIDDEN: gettext_noop(
        "The credentials lack a permission. Test the connection to see which."
    ),
    ConnectionState.CRD_MISSING: gettext_noop(
        "The cluster does not serve a kind that Cadastre writes to it."
    ),
    ConnectionState.INCOMPLETE: gettext_noop(
        "The last full sync could not ingest or write some objects. All others are up"
        " to date. The lists of objects and of drift show which objects failed, and why."
    ),
    ConnectionState.IDENTITY_CHANGED: gettext_noop(
        "Another cluster answers at this address. Nothing is read or written."
        " Correct the address, or disconnect this cluster and connect the other one."
    ),
    ConnectionState.FAILING: gettext_noop(
        "The last sync failed. It is retried with increasing delays."
    ),
    ConnectionState.PAUSED: gettext_noop(
        "The connection is paused. Nothing is read or written until it is resumed."
    ),
}


_ENDED_WITHOUT_RESULT = gettext_noop(
    "The last sync was stopped, or its worker died. It is retried."
)
_RUNNING = gettext_noop("The next one is running.")


def describe(facts: ConnectionFacts, now: datetime, *, stale_after: timedelta) -> ConnectionStatus:
    """Return the status at the time `now`; it is stale `stale_after` the last full success.

    That of a paused connection includes its last error.
    """
    state = _state(facts, now, stale_after)
    sentences = [_SENTENCES[state]]
    if state in {ConnectionState.HEALTHY, ConnectionState.INCOMPLETE} and _has_newer_attempt(facts):
        sentences.append(_RUNNING)
    if state == ConnectionState.FAILING and not facts.error_code:
        sentences = [_ENDED_WITHOUT_RESULT]
    return ConnectionStatus(state, tuple(sentences), facts.error if facts.error_code else "")


def _state(facts: ConnectionFacts, now: datetime, stale_after: timedelta) -> ConnectionState:
    if facts.paused:
        return ConnectionState.PAUSED
    if facts.error_code:
        return _STATE_BY_CODE.get(facts.error_code, ConnectionState.FAILING)
    if _has_newer_attempt(facts) and not facts.running:
        return ConnectionState.FAILING
    if facts.succeeded_at is None:
        return ConnectionState.NEVER_SYNCED
    if now - facts.succeeded_at > stale_after:
        return ConnectionState.STALE
    return ConnectionState.INCOMPLETE if facts.failed_objects else ConnectionState.HEALTHY


def _has_newer_attempt(facts: ConnectionFacts) -> bool:
    """Return True if a full sync started after the last successful one ended."""
    succeeded, tried = facts.succeeded_at, facts.tried_at
    return tried is not None and (succeeded is None or tried > succeeded)
