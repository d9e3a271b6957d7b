"""Conditions of clusters and of the register: each is found with its subject, and goes again."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest

from pools.models import Alert, Connection, Finding, Leak, Recovery
from pools.platform import database
from pools.platform.conditions import evaluation
from tests import factories


def stale() -> Any:
    now = database.now()
    hour = timedelta(hours=1)
    # One that passes and one that is paused are not told of.
    for succeeded_at, paused in ((now, False), (now - hour, True)):
        values = {"server": "s", "sealed": "x", "due_at": now, "paused": paused}
        Connection.objects.create(cluster=factories.cluster(), succeeded_at=succeeded_at, **values)
    return Connection.objects.create(
        cluster=factories.cluster(), server="s", sealed="x", due_at=now, succeeded_at=now - hour
    )


def never() -> Any:
    due = database.now() - timedelta(minutes=10)
    return Connection.objects.create(
        cluster=factories.cluster(), server="s", sealed="x", due_at=due
    )


def duplicate() -> Any:
    return Finding.objects.create(
        cluster=factories.cluster(), kind="CiliumNode", code="pod_cidr_overlap", subject="x",
        severity="error", message="m", since=database.now(),
    )  # fmt: skip


def leaked() -> Any:
    pool, now = factories.pool("10.0.0.0/24"), database.now()
    block = factories.row(factories.take(pool))
    return Leak.objects.create(
        block=block, cluster=pool.cluster, source="s", holder_kind="vm", holder_id="v",
        allocated_at=now, missed_at=now, observed_at=now, confirmed_at=now,
    )  # fmt: skip


def recovering() -> Any:
    return Recovery.objects.create(since=database.now(), reason="restored", after_run=0)


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("cause", "code"),
    [
        (stale, "cluster_stale"), (never, "cluster_stale"), (duplicate, "duplicate_address"),
        (leaked, "leaked_blocks"), (recovering, "recovery_active"),
    ],
)  # fmt: skip
def test_a_condition_is_told_and_ends(
    cause: Callable[[], Any], code: str, caplog: pytest.LogCaptureFixture
) -> None:
    row = cause()
    evaluation.evaluate()
    assert [alert.code for alert in Alert.objects.filter(ended_at=None)] == [code]
    row.delete()
    assert [alert.code for alert in evaluation.evaluate().ended] == [code]
    assert "cannot be looked at" not in caplog.text
