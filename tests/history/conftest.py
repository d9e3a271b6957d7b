"""Every test here has a database; `clock` moves the register's clock within the test."""

from __future__ import annotations

import pytest
from django.db import connection

from pools.models.history import SEQUENCE
from tests.pools.conftest import Clock


@pytest.fixture(autouse=True)
def _database(db: None) -> None:
    """Almost all rules are kept by the database.

    Events are numbered from 1: a search looks through all numbers, also those that tests before drew.
    """
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval(%s, 1, false)", [SEQUENCE])


@pytest.fixture
def clock() -> Clock:
    return Clock()
