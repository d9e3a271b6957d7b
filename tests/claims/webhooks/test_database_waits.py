"""What the mutating webhook answers while tables are locked."""

import contextlib
from collections.abc import Iterator

import pytest
from django.db import connection

from claims.models import Decision
from claims.workloads import vm_lookup
from pools.webhooks import register
from tests.claims.webhooks.doors import Door, review
from tests.core.vm_world import pod

pytestmark = pytest.mark.django_db(transaction=True)

# Read before the tests begin, which are given more time than an API server gives.
LIMITS = (register.STATEMENT_MS, vm_lookup.WAIT_MS)


@pytest.fixture(autouse=True)
def _as_in_production(monkeypatch: pytest.MonkeyPatch) -> None:
    assert max(LIMITS) < 1000
    monkeypatch.setattr(register, "STATEMENT_MS", LIMITS[0])
    monkeypatch.setattr(vm_lookup, "WAIT_MS", LIMITS[1])


@contextlib.contextmanager
def _locked(table: str) -> Iterator[None]:
    """By another connection."""
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("BEGIN")
            cursor.execute(f"LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE")
            yield
            cursor.execute("ROLLBACK")
    finally:
        other.close()


def test_without_the_register_the_failure_policy_decides(door: Door) -> None:
    with _locked("claims_nad"):
        assert door.post(review(pod())).status_code == 503
    assert "patch" in door.ask(pod())


def test_a_decision_that_cannot_be_written_blocks_nobody(
    door: Door, caplog: pytest.LogCaptureFixture
) -> None:
    with _locked("claims_decision"):
        assert "patch" in door.ask(pod())
    assert "was not recorded" in caplog.text
    assert not Decision.objects.exists()
