"""Tests with threads, processes and committed rows: the test database is emptied after each."""

from collections.abc import Iterator

import pytest
from django.db import connection

from tests.concurrent import scratch as scratches


@pytest.fixture
def scratch(transactional_db: None) -> Iterator[scratches.Scratch]:
    """A database of its own, for a crowd of processes."""
    with scratches.database() as database:
        yield database


@pytest.fixture
def no_deadlock(transactional_db: None) -> Iterator[None]:
    """PostgreSQL had to break no deadlock meanwhile."""
    before = _deadlocks()
    yield
    assert _deadlocks() == before


def _deadlocks() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_stat_force_next_flush(), pg_stat_clear_snapshot(), deadlocks"
            " FROM pg_stat_database WHERE datname = current_database()"
        )
        return int(cursor.fetchone()[2])
