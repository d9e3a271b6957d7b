"""Conditions of clusters and of the register open, change and end alerts; each is told once, whoever evaluates."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, connection

from pools.models import Alert, Connection, Environment, Finding, Leak, Level, Now, Recovery
from pools.platform import database
from pools.platform.conditions import evaluation, registry
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels
from pools.register.conditions import pools
from tests import factories


def opened(code: str = "") -> list[Alert]:
    rows = Alert.objects.filter(ended_at=None)
    return list((rows.filter(code=code) if code else rows).order_by("subject"))


@pytest.fixture
def only(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The registry holds nothing but what the test puts there."""
    stored: list[Condition] = []
    monkeypatch.setattr(registry, "CONDITIONS", stored)
    return stored


@pytest.mark.exhaustive
def test_a_pool_over_80_per_cent_warns_and_over_95_is_an_error_and_ends_below() -> None:
    pool = factories.pool("10.0.0.0/27", cooldown=0)  # 30 blocks
    blocks = [factories.take(pool) for _ in range(24)]
    evaluation.evaluate()
    assert not opened()  # 80 % is not over 80 %
    blocks.append(factories.take(pool))
    assert [item.level for item in evaluation.evaluate().opened] == ["warning"]
    blocks += [factories.take(pool) for _ in range(4)]
    outcome = evaluation.evaluate()
    assert (len(outcome.opened), [item.level for item in outcome.changed]) == (0, ["error"])
    (alert,) = opened("pool_nearly_full")
    assert alert.title == f"Pool {pool} is 96 % full"
    assert alert.url == f"/admin/pools/pool/{pool.pk}/change/"
    for block in blocks:
        factories.give_back(block)
    assert [item.pk for item in evaluation.evaluate().ended] == [alert.pk]
    alert.refresh_from_db()
    assert alert.ended_at is not None


def test_a_share_that_wavers_about_the_threshold_does_not_flap() -> None:
    pool = factories.pool("10.0.0.0/27", cooldown=0)
    blocks = [factories.take(pool) for _ in range(25)]
    evaluation.evaluate()
    for _ in range(3):
        factories.give_back(blocks.pop())
        outcome = evaluation.evaluate()  # 80 %, 76.7 %, 73.3 %
    assert [item.code for item in outcome.ended] == ["pool_nearly_full"]
    blocks.append(factories.take(pool))
    assert not evaluation.evaluate().opened


def test_thresholds_are_settings(settings: Any) -> None:
    settings.IPAM_ALERT_WARNING_PERCENT = 50
    pool = factories.pool("10.0.0.0/29")
    for _ in range(4):
        factories.take(pool)
    evaluation.evaluate()
    assert [item.level for item in opened()] == ["warning"]


def test_a_pool_full_of_cooling_blocks_is_told_as_such() -> None:
    pool = factories.pool("10.0.0.0/29", cooldown=3600)
    for block in [factories.take(pool) for _ in range(5)]:
        factories.give_back(block)
    evaluation.evaluate()
    assert sorted(item.code for item in opened()) == ["cooldown_queue_long", "pool_nearly_full"]


def test_refused_allocations_are_told_and_the_environment() -> None:
    pool = factories.pool("10.0.0.0/30")
    factories.drain(pool, env="shop")
    codes = {item.code for item in evaluation.evaluate().opened}
    assert codes == {"pool_nearly_full", "allocation_failing", "environment_degraded"}
    (alert,) = opened("allocation_failing")
    assert "refused within 5 minutes" in alert.detail


def test_refusals_of_long_ago_are_over() -> None:
    pool = factories.pool("10.0.0.0/30")
    factories.drain(pool)
    evaluation.evaluate()
    assert opened("allocation_failing")
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pools_failureevent DISABLE TRIGGER USER")
        cursor.execute(
            "UPDATE pools_failureevent SET pgh_created_at = pgh_created_at - interval '6 minutes'"
        )
    evaluation.evaluate()
    assert not opened("allocation_failing")


def test_evaluating_again_changes_nothing() -> None:
    factories.drain(factories.pool("10.0.0.0/30"), env="shop")
    first = evaluation.evaluate()
    since = {item.pk: item.since for item in opened()}
    again = evaluation.evaluate()
    assert len(first.opened) == 3
    assert (again.opened, again.changed, again.ended) == ([], [], [])
    assert {item.pk: item.since for item in opened()} == since


def test_a_condition_that_breaks_leaves_its_alerts_and_the_others(only: Any) -> None:
    def find(_known: OpenLevels) -> list[ActiveCondition]:
        return [ActiveCondition("a", "1", Level.ERROR, "one")]

    def breaks(_known: OpenLevels) -> list[ActiveCondition]:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1 / 0")
        return []

    only[:] = [Condition({"a": ""}, find)]
    evaluation.evaluate()
    only[:] = [
        Condition({"a": ""}, breaks),
        Condition({"b": ""}, lambda _k: [ActiveCondition("b", "2", Level.ERROR, "two")]),
    ]
    outcome = evaluation.evaluate()
    assert [item.code for item in outcome.opened] == ["b"]
    assert not outcome.ended
    only[:] = [Condition({"b": ""}, lambda _k: [])]
    assert {item.code for item in evaluation.evaluate().ended} == {"a", "b"}


def test_of_very_many_subjects_some_are_named_and_the_others_counted(only: Any) -> None:
    def find(_known: OpenLevels) -> list[ActiveCondition]:
        return [
            ActiveCondition("a", f"{n:04}", Level.WARNING, f"thing {n}")
            for n in reversed(range(500))
        ]

    only[:] = [Condition({"a": ""}, find)]
    evaluation.evaluate()
    rows = opened()
    assert len(rows) == evaluation.MOST + 1
    assert [row.title for row in rows if row.subject == "more"] == ["300 more like “thing 299”"]
    again = evaluation.evaluate()
    assert (again.opened, again.ended) == ([], [])


def test_two_alerts_of_one_subject_cannot_be_open() -> None:
    values = {
        "code": "a",
        "subject": "1",
        "level": "error",
        "title": "x",
        "since": Now(),
        "seen_at": Now(),
    }
    Alert.objects.create(**values, ended_at=Now())
    Alert.objects.create(**values)
    with pytest.raises(IntegrityError):
        Alert.objects.create(**values)


def test_texts_of_others_are_cut_to_what_fits() -> None:
    cluster = factories.cluster()
    Environment.objects.create(
        cluster=cluster, org="o" * 253, env="e" * 253, degraded_since=Now(), reason="x", message="m"
    )
    (alert,) = evaluation.evaluate().opened
    assert len(alert.title) == 300


def test_every_code_is_registered_and_tidying_keeps_what_is_open() -> None:
    assert {pools.NEARLY_FULL, "duplicate_address", "recovery_active"} <= set(registry.codes())
    factories.drain(factories.pool("10.0.0.0/30"))
    evaluation.evaluate()
    Alert.objects.filter(code="allocation_failing").update(ended_at="2020-01-01T00:00:00Z")
    assert evaluation.tidy(90) == 1
    assert evaluation.tidy(0) == 0
    assert [item.code for item in opened()] == ["pool_nearly_full"]


# --- Conditions of clusters and of the register: each is found with its subject, and goes again
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


@pytest.mark.exhaustive
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
