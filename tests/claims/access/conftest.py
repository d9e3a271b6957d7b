"""What all sweeps start from."""

import logging
from collections.abc import Iterator

import pytest

from tests.claims.access import two_worlds


@pytest.fixture
def owner(request: pytest.FixtureRequest) -> two_worlds.Owner:
    return two_worlds.Owner(getattr(request, "param", "local"))


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """Thousands of refusals are not worth a line each."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)
