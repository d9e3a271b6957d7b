"""What breaks a rule of the database; `clock` moves the register's clock within the test."""

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import IntegrityError, connection, transaction

from tests.kube.fake import FakeCluster


class Clock:
    """`ipam_now()` as the tests move it; a transaction's own time stands still."""

    def __init__(self) -> None:
        self.offset = 0.0

    def advance(self, seconds: float) -> None:
        self.offset += seconds
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT set_config('ipam.clock_offset', %s, true)", [f"{self.offset} seconds"]
            )


@pytest.fixture
def fake(settings: Any) -> Iterator[FakeCluster]:
    """A cluster of this test alone, that serves the built-in kinds only."""
    from tests.kube.fake import FakeCluster

    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    with FakeCluster() as running:
        yield running


@contextlib.contextmanager
def _broken(rule: str) -> Iterator[None]:
    with pytest.raises(IntegrityError) as caught, transaction.atomic():
        yield
    assert caught.value.__cause__.diag.constraint_name == rule  # type: ignore[union-attr]


@pytest.fixture
def breaks() -> Callable[[str], contextlib.AbstractContextManager[None]]:
    """`with breaks("rule"):` what is inside must fail by that constraint of the database."""
    return _broken


@pytest.fixture
def sql() -> Callable[..., list[tuple[object, ...]]]:
    """Somebody with psql."""

    def run(statement: str, *values: object) -> list[tuple[object, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []

    return run
