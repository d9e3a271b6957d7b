"""Runs: bounded in time, taken once, gone on with, and what all of them together say."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection

from pools.core import errors
from pools.models import CheckRun
from pools.models.fields import Now
from pools.platform import events
from pools.platform.checks import checks, registry, reports, runs
from tests import factories
from tests.checks.conftest import BY, check, wrong

pytestmark = pytest.mark.django_db


class Slow:
    """A check of ten steps of which each one finds something; the time is over after `steps`."""

    def __init__(self, steps: int) -> None:
        self.looked: list[int] = []
        self.steps = steps
        self.check = checks.Check(
            "slow", "usage-adds-up", "Nothing.", find=self.find, steps=self.all
        )

    def all(self, after: int | None) -> Iterator[tuple[int, int]]:
        return ((one, one) for one in range((after or 0) + 1, 11))

    def find(self, at: int) -> Iterator[checks.Violation]:
        if len(self.looked) == self.steps:
            raise checks.OutOfTime
        self.looked.append(at)
        yield checks.Violation(f"step {at}")


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Slow:
    made = Slow(4)
    quick = replace(registry.get("leases"), code="quick")
    monkeypatch.setattr(registry, "CHECKS", [quick, made.check])
    return made


def _entry(run: CheckRun, code: str) -> Any:
    return next(one for one in run.report if one["code"] == code)


def test_the_next_run_goes_on_where_the_time_was_over(slow: Slow) -> None:
    first = check()
    assert not first.complete
    assert (_entry(first, "slow")["resume"], _entry(first, "slow")["count"]) == (4, 4)
    assert "was reached before these checks finished: slow." in reports.sentence(first)
    assert slow.looked == [1, 2, 3, 4]
    slow.steps = 10
    second = check()
    assert slow.looked == list(range(1, 11))
    entry = _entry(second, "slow")
    assert (entry["complete"], entry["resume"], entry["count"]) == (True, None, 10)
    assert [one["code"] for one in second.report] == ["slow", "quick"], "what was missing is first"
    assert entry["examples"][0]["text"] == "step 1"
    slow.steps = 20
    assert _entry(check(), "slow")["count"] == 10, "and then from the beginning"


def test_what_was_not_looked_at_is_said_and_comes_first(slow: Slow) -> None:
    """Of a run whose time is over before it begins."""
    run = runs.request_run(author=BY, seconds=1)
    CheckRun.objects.filter(pk=run.pk).update(seconds=0)
    done = runs.execute(run.pk)
    assert done is not None
    assert {one["state"] for one in done.report} == {reports.NOT_LOOKED}
    assert not done.complete
    assert all(one.entry is None for one in reports.latest_statuses())


def test_a_statement_does_not_outlast_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeping = checks.Check(
        "asleep",
        "usage-adds-up",
        "Nothing.",
        find=checks.find_by_statement("SELECT 'x', 1 FROM pg_sleep(60)"),
    )
    monkeypatch.setattr(registry, "CHECKS", [sleeping])
    run = check(seconds=1)
    assert _entry(run, "asleep")["state"] == reports.PARTIAL
    assert not run.complete


def test_a_check_that_fails_is_a_violation_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    broken = checks.Check(
        "broken", "usage-adds-up", "Nothing.", find=checks.find_by_statement("SELECT 1 / 0")
    )
    monkeypatch.setattr(registry, "CHECKS", [broken, registry.get("leases")])
    run = check()
    assert (_entry(run, "broken")["state"], _entry(run, "leases")["state"]) == ("failed", "clean")
    assert "division by zero" in _entry(run, "broken")["examples"][0]["text"]
    assert run.violations == reports.count_violations() == 1


def test_a_run_is_done_once() -> None:
    run = runs.request_run(author=BY, only=["leases"])
    assert runs.execute(run.pk) is not None
    assert runs.execute(run.pk) is None


def test_no_such_check() -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        runs.request_run(author=BY, only=["nonsense"])
    assert caught.value.code == "unknown_check"


@pytest.mark.exhaustive
def test_once_a_night() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET applied = now()")
        assert runs.due() == []  # a new register had no night yet
        cursor.execute("UPDATE django_migrations SET applied = applied - interval '2 days'")
    (nightly,) = runs.due()
    assert runs.due() == [nightly]
    runs.execute(nightly)
    assert runs.due() == []
    assert CheckRun.objects.get(pk=nightly).actor == events.WORKER.actor
    assert not CheckRun.objects.get(pk=nightly).repair
    asked = runs.request_run(author=BY)
    assert runs.due() == [asked.pk]
    CheckRun.objects.update(requested_at=Now() - timedelta(days=1))
    assert len(runs.due()) == 2


@pytest.mark.exhaustive
def test_the_last_word_on_a_check_is_of_the_newest_run_that_looked() -> None:
    pool = factories.pool("10.0.0.0/28")
    with connection.cursor() as cursor:
        cursor.execute(
            "DELETE FROM pools_window; INSERT INTO pools_window (pool_id, family, since) VALUES (%s, 6, now())",
            [pool.pk],
        )
    assert wrong(check()) == {"windows": 1}
    check(only=["leases"])
    statuses = {one.check.code: one for one in reports.latest_statuses()}
    assert [code for code, one in statuses.items() if one.bad] == ["windows"]
    assert reports.count_violations() == 1
    check(only=["windows"], repair=True)
    assert reports.count_violations() == 0


def test_examples_are_few_and_counts_are_right() -> None:
    pool = factories.pool("10.0.0.0/24")
    factories.take(pool)
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pools_block DISABLE TRIGGER pools_block_keeps_its_word")
        cursor.execute("UPDATE pools_block SET family = 6 WHERE state = 'available'")
        cursor.execute("SELECT count(*) FROM pools_block WHERE state = 'available'")
        (count,) = cursor.fetchone()
    run = check(only=["block_place"])
    assert wrong(run) == {"block_place": count}
    assert len(run.report[0]["examples"]) == reports.EXAMPLES
