"""The state of a connection, one line for each."""

from datetime import UTC, datetime, timedelta

import pytest

from pools.core.kubernetes import connection_status
from pools.core.kubernetes.connection_status import ConnectionFacts, ConnectionState

NOW = datetime(2026, 5, 5, 14, 2, tzinfo=UTC)
STALE_AFTER = timedelta(minutes=15)
JUST = NOW - timedelta(minutes=9)
LONG_AGO = NOW - timedelta(minutes=31)

CASES = {
    "nothing yet": (ConnectionFacts(False, None), ConnectionState.NEVER_SYNCED),
    "lately": (ConnectionFacts(False, JUST), ConnectionState.HEALTHY),
    "to the minute": (
        ConnectionFacts(False, NOW - STALE_AFTER),
        ConnectionState.HEALTHY,
    ),
    "long ago": (ConnectionFacts(False, LONG_AGO), ConnectionState.STALE),
    "401": (
        ConnectionFacts(False, JUST, "cluster_unauthorized", "no", 1),
        ConnectionState.UNAUTHORIZED,
    ),
    "403": (ConnectionFacts(False, JUST, "cluster_forbidden", "no", 1), ConnectionState.FORBIDDEN),
    "no answer": (
        ConnectionFacts(False, LONG_AGO, "cluster_unreachable", "no", 9),
        ConnectionState.UNREACHABLE,
    ),
    "TLS": (ConnectionFacts(False, None, "cluster_tls", "no", 1), ConnectionState.UNREACHABLE),
    "address": (
        ConnectionFacts(False, None, "url_not_allowed", "no", 1),
        ConnectionState.UNREACHABLE,
    ),
    "no CRD": (ConnectionFacts(False, JUST, "crd_missing", "no", 1), ConnectionState.CRD_MISSING),
    "another": (
        ConnectionFacts(False, JUST, "identity_changed", "no", 1),
        ConnectionState.IDENTITY_CHANGED,
    ),
    "503": (ConnectionFacts(False, JUST, "cluster_server_error", "no", 1), ConnectionState.FAILING),
    "a code of tomorrow": (
        ConnectionFacts(False, JUST, "new_code", "no", 1),
        ConnectionState.FAILING,
    ),
    "objects failed": (ConnectionFacts(False, JUST, failed_objects=2), ConnectionState.INCOMPLETE),
    "objects failed long ago": (
        ConnectionFacts(False, LONG_AGO, failed_objects=2),
        ConnectionState.STALE,
    ),
    "the next one is running": (
        ConnectionFacts(False, JUST, tried_at=NOW, running=True),
        ConnectionState.HEALTHY,
    ),
    "the next one died": (ConnectionFacts(False, JUST, tried_at=NOW), ConnectionState.FAILING),
    "the first one is running": (
        ConnectionFacts(False, None, tried_at=NOW, running=True),
        ConnectionState.NEVER_SYNCED,
    ),
    "the first one died": (ConnectionFacts(False, None, tried_at=NOW), ConnectionState.FAILING),
    "it ended": (ConnectionFacts(False, NOW, tried_at=JUST), ConnectionState.HEALTHY),
    "paused": (ConnectionFacts(True, JUST), ConnectionState.PAUSED),
    "paused while unreachable": (
        ConnectionFacts(True, JUST, "cluster_unreachable", "no"),
        ConnectionState.PAUSED,
    ),
}


@pytest.mark.parametrize(("facts", "state"), CASES.values(), ids=CASES)
def test_a_state(facts: ConnectionFacts, state: ConnectionState) -> None:
    status = connection_status.describe(facts, NOW, stale_after=STALE_AFTER)
    assert status.state is state
    assert ("Last error: no" in status.sentence) is bool(facts.error)


def test_each_state_has_a_case_a_key_and_a_sentence() -> None:
    assert {state for _, state in CASES.values()} == set(ConnectionState)
    assert len({state.key for state in ConnectionState}) == len(ConnectionState)
    for state in ConnectionState:
        assert " " not in state.key


def test_what_is_said_while_the_next_pass_runs_or_after_it_died() -> None:
    running = connection_status.describe(
        ConnectionFacts(False, JUST, tried_at=NOW, running=True), NOW, stale_after=STALE_AFTER
    )
    assert running.sentence == "The last full sync succeeded. The next one is running."
    died = connection_status.describe(
        ConnectionFacts(False, JUST, tried_at=NOW), NOW, stale_after=STALE_AFTER
    )
    assert died.sentence.startswith("The last sync was stopped, or its worker died")
