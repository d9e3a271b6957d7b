"""A register that nobody broke contradicts no check, whatever is in it."""

import pytest

from pools.register.demo import demo
from tests.checks.conftest import check

pytestmark = pytest.mark.django_db


def test_an_empty_register() -> None:
    assert check() == []


def test_the_demo_fleet() -> None:
    demo.load()
    assert check() == []
