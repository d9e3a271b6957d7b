"""The state of a connection, one line for each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from pools.core.kubernetes import connection_status
from pools.core.kubernetes.connection_status import Facts, State

NOW = datetime(2026, 5, 5, 14, 2, tzinfo=UTC)
JUST = NOW - timedelta(minutes=9)
LONG_AGO = NOW - timedelta(minutes=31)

CASES = {
    "nothing yet": (Facts(False, None), State.NEVER_SYNCED),
    "lately": (Facts(False, JUST), State.HEALTHY),
    "to the minute": (Facts(False, NOW - connection_status.STALE_AFTER), State.HEALTHY),
    "long ago": (Facts(False, LONG_AGO), State.STALE),
    "401": (Facts(False, JUST, "cluster_unauthorized", "no", 1), State.UNAUTHORIZED),
    "403": (Facts(False, JUST, "cluster_forbidden", "no", 1), State.FORBIDDEN),
    "no answer": (Facts(False, LONG_AGO, "cluster_unreachable", "no", 9), State.UNREACHABLE),
    "TLS": (Facts(False, None, "cluster_tls", "no", 1), State.UNREACHABLE),
    "address": (Facts(False, None, "url_not_allowed", "no", 1), State.UNREACHABLE),
    "no CRD": (Facts(False, JUST, "crd_missing", "no", 1), State.CRD_MISSING),
    "another": (Facts(False, JUST, "identity_changed", "no", 1), State.IDENTITY_CHANGED),
    "503": (Facts(False, JUST, "cluster_server_error", "no", 1), State.FAILING),
    "a code of tomorrow": (Facts(False, JUST, "new_code", "no", 1), State.FAILING),
    "objects failed": (Facts(False, JUST, failed_objects=2), State.INCOMPLETE),
    "objects failed long ago": (Facts(False, LONG_AGO, failed_objects=2), State.STALE),
    "the next one is running": (Facts(False, JUST, tried_at=NOW, running=True), State.HEALTHY),
    "the next one died": (Facts(False, JUST, tried_at=NOW), State.FAILING),
    "the first one is running": (
        Facts(False, None, tried_at=NOW, running=True),
        State.NEVER_SYNCED,
    ),
    "the first one died": (Facts(False, None, tried_at=NOW), State.FAILING),
    "it ended": (Facts(False, NOW, tried_at=JUST), State.HEALTHY),
    "paused": (Facts(True, JUST), State.PAUSED),
    "paused while unreachable": (Facts(True, JUST, "cluster_unreachable", "no"), State.PAUSED),
}


@pytest.mark.parametrize(("facts", "state"), CASES.values(), ids=CASES)
def test_a_state(facts: Facts, state: State) -> None:
    standing = connection_status.of(facts, NOW)
    assert standing.state is state
    assert ("Last fault: no" in standing.sentence) is bool(facts.error)


def test_each_state_has_a_case_a_key_and_a_sentence() -> None:
    assert {state for _, state in CASES.values()} == set(State)
    assert len({state.key for state in State}) == len(State)
    for state in State:
        assert " " not in state.key


def test_what_is_said_while_the_next_pass_runs_or_after_it_died() -> None:
    running = connection_status.of(Facts(False, JUST, tried_at=NOW, running=True), NOW)
    assert running.sentence == "The last full pass succeeded. The next one is running."
    died = connection_status.of(Facts(False, JUST, tried_at=NOW), NOW)
    assert died.sentence.startswith("The last pass was stopped before it ended, or its worker died")
