"""The state of a connection, one line for each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pools.core.kubernetes import connection_status
from pools.core.kubernetes.connection_status import ConnectionState, Facts

NOW = datetime(2026, 5, 5, 14, 2, tzinfo=UTC)
JUST = NOW - timedelta(minutes=9)
LONG_AGO = NOW - timedelta(minutes=31)

CASES = {
    "nothing yet": (Facts(False, None), ConnectionState.NEVER_SYNCED),
    "lately": (Facts(False, JUST), ConnectionState.HEALTHY),
    "to the minute": (Facts(False, NOW - connection_status.STALE_AFTER), ConnectionState.HEALTHY),
    "long ago": (Facts(False, LONG_AGO), ConnectionState.STALE),
    "401": (Facts(False, JUST, "cluster_unauthorized", "no", 1), ConnectionState.UNAUTHORIZED),
    "403": (Facts(False, JUST, "cluster_forbidden", "no", 1), ConnectionState.FORBIDDEN),
    "no answer": (
        Facts(False, LONG_AGO, "cluster_unreachable", "no", 9),
        ConnectionState.UNREACHABLE,
    ),
    "TLS": (Facts(False, None, "cluster_tls", "no", 1), ConnectionState.UNREACHABLE),
    "address": (Facts(False, None, "url_not_allowed", "no", 1), ConnectionState.UNREACHABLE),
    "no CRD": (Facts(False, JUST, "crd_missing", "no", 1), ConnectionState.CRD_MISSING),
    "another": (Facts(False, JUST, "identity_changed", "no", 1), ConnectionState.IDENTITY_CHANGED),
    "503": (Facts(False, JUST, "cluster_server_error", "no", 1), ConnectionState.FAILING),
    "a code of tomorrow": (Facts(False, JUST, "new_code", "no", 1), ConnectionState.FAILING),
    "objects failed": (Facts(False, JUST, failed_objects=2), ConnectionState.INCOMPLETE),
    "objects failed long ago": (Facts(False, LONG_AGO, failed_objects=2), ConnectionState.STALE),
    "the next one is running": (
        Facts(False, JUST, tried_at=NOW, running=True),
        ConnectionState.HEALTHY,
    ),
    "the next one died": (Facts(False, JUST, tried_at=NOW), ConnectionState.FAILING),
    "the first one is running": (
        Facts(False, None, tried_at=NOW, running=True),
        ConnectionState.NEVER_SYNCED,
    ),
    "the first one died": (Facts(False, None, tried_at=NOW), ConnectionState.FAILING),
    "it ended": (Facts(False, NOW, tried_at=JUST), ConnectionState.HEALTHY),
    "paused": (Facts(True, JUST), ConnectionState.PAUSED),
    "paused while unreachable": (
        Facts(True, JUST, "cluster_unreachable", "no"),
        ConnectionState.PAUSED,
    ),
}


@pytest.mark.parametrize(("facts", "state"), CASES.values(), ids=CASES)
def test_a_state(facts: Facts, state: ConnectionState) -> None:
    standing = connection_status.describe(facts, NOW)
    assert standing.state is state
    assert ("Last fault: no" in standing.sentence) is bool(facts.error)


def test_each_state_has_a_case_a_key_and_a_sentence() -> None:
    assert {state for _, state in CASES.values()} == set(ConnectionState)
    assert len({state.key for state in ConnectionState}) == len(ConnectionState)
    for state in ConnectionState:
        assert " " not in state.key


def test_what_is_said_while_the_next_pass_runs_or_after_it_died() -> None:
    running = connection_status.describe(Facts(False, JUST, tried_at=NOW, running=True), NOW)
    assert running.sentence == "The last full pass succeeded. The next one is running."
    died = connection_status.describe(Facts(False, JUST, tried_at=NOW), NOW)
    assert died.sentence.startswith("The last pass was stopped before it ended, or its worker died")
