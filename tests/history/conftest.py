"""Every test here has a database; `clock` moves the register's clock within the test."""

from __future__ import annotations

import pytest

from tests import factories
from tests.pools.conftest import Clock


@pytest.fixture(autouse=True)
def _database(db: None) -> None:
    """Almost all rules are kept by the database."""
    factories.number_events_from_one()
