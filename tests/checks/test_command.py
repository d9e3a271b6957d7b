"""`manage.py check_data`: tables, JSON, exit statuses; and the alert of the nightly task."""

import json

import pytest
from django.core.management import CommandError

from pools import tasks
from pools.models import Alert, PoolCIDR
from pools.platform import checks
from pools.platform.conditions import evaluation
from pools.register.demo import demo
from tests import commands, factories


def check_data(*words: str) -> tuple[int, str]:
    """Exit status and output."""
    return commands.status_and_output("check_data", *words)


def _lose_free_space() -> str:
    pool = factories.pool("10.0.0.0/24")
    factories.cidr(pool).free_spans.all().delete()
    return f"10.0.0.0/24 of pool {pool}: 254 blocks from 10.0.0.1/32 to 10.0.0.254/32 can never be allocated"


def test_a_clean_register() -> None:
    assert check_data() == (0, "")


@pytest.mark.exhaustive
def test_the_demo_fleet_contradicts_no_check() -> None:
    demo.load()
    assert check_data() == (0, "")


def test_what_is_wrong_in_words() -> None:
    text = _lose_free_space()
    status, table = check_data()
    assert status == 1
    assert table.startswith("CHECK")
    assert text in table
    status, printed = check_data("--only", "free_space", "-o", "json")
    (row,) = json.loads(printed)
    assert (status, row["check"]) == (1, "free_space")
    assert check_data("--only", "leases", "history") == (0, "")
    with pytest.raises(CommandError, match="invalid choice: 'nonsense'"):
        check_data("--only", "nonsense")


def test_a_check_that_fails_is_a_violation_and_the_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failing = {"broken": lambda: (text for (text,) in checks.rows("SELECT (1 / 0)::text"))}
    monkeypatch.setattr(checks, "CHECKS", failing | {"windows": checks.CHECKS["windows"]})
    assert list(checks.run()) == [("broken", "The check failed: division by zero")]


def test_a_check_without_time_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    sleeping = {name: lambda: checks.rows("SELECT pg_sleep(60)") for name in ("first", "second")}
    monkeypatch.setattr(checks, "CHECKS", sleeping)
    first, second = checks.run(seconds=0.5)
    assert first == ("first", "The check failed: canceling statement due to statement timeout")
    assert second == ("second", "The check failed: no time was left for it")


def test_one_alert_that_stays_until_a_night_finds_nothing() -> None:
    text = _lose_free_space()
    assert tasks.check_data() == 1
    (alert,) = Alert.objects.filter(code="check_violations")
    assert alert.title == "1 violation of free_space"
    assert text in alert.detail
    evaluation.evaluate()
    alert.refresh_from_db()
    assert alert.ended_at is None
    PoolCIDR.objects.get().free_spans.create(first=1, last=254)
    assert tasks.check_data() == 0
    alert.refresh_from_db()
    assert alert.ended_at is not None
