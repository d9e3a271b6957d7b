"""A register that nobody broke contradicts no check, whatever is in it."""

from __future__ import annotations

import pytest

from pools.platform.checks import registry, reports
from pools.register.demo import demo
from tests.checks.conftest import check, texts, wrong

pytestmark = pytest.mark.django_db


def test_an_empty_register() -> None:
    run = check()
    assert wrong(run) == {}, texts(run)
    assert run.complete
    assert {one["code"] for one in run.report} == set(registry.codes())


def test_the_demo_fleet() -> None:
    demo.load()
    run = check()
    assert wrong(run) == {}, texts(run)
    assert {one["state"] for one in run.report} == {reports.CLEAN}
    assert run.violations == 0
