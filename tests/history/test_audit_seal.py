"""What is sealed is complete, however late somebody commits, and however often sealers die."""

import contextlib
import threading
from collections.abc import Iterator

import psycopg
import pytest
from django.db import DatabaseError, close_old_connections, connection

from pools.models import AuditSegment, BlockEvent, CountedUntil
from pools.platform import audit
from tests import factories

pytestmark = pytest.mark.django_db(transaction=True)


@contextlib.contextmanager
def elsewhere() -> Iterator[psycopg.Connection]:
    """Another session of the same database; what it leaves open is rolled back."""
    parameters = connection.get_connection_params()
    known = {name: parameters[name] for name in ("dbname", "user", "password", "host", "port")}
    with psycopg.connect(**known) as session:
        yield session
        session.rollback()


def write(session: psycopg.Connection, name: str) -> int:
    """Record a change of a cluster inside the session's transaction; the event's number."""
    session.execute("UPDATE pools_cluster SET name = %s WHERE id = (SELECT min(id) FROM pools_cluster)", [name])  # fmt: skip
    row = session.execute("SELECT max(pgh_id) FROM pools_clusterevent").fetchone()
    assert row is not None
    return int(row[0])


def sealed_through() -> int:
    last = AuditSegment.objects.last()
    return last.last_id if last else 0


def test_a_long_transaction_is_waited_for() -> None:
    pool = factories.pool("10.0.0.0/24")
    audit.seal()
    before = sealed_through()
    with elsewhere() as slow:
        number = write(slow, "late")
        factories.take(pool)
        assert audit.seal() == 0
        assert audit.seal() == 0
        assert sealed_through() == before
        slow.commit()
    assert audit.seal() >= 2
    assert sealed_through() > number
    assert not audit.verify().faults


def test_those_that_end_meanwhile_free_what_was_before_them() -> None:
    """Transactions that overlap without end hold up nothing for ever."""
    pool = factories.pool("10.0.0.0/24")
    audit.seal()
    with elsewhere() as first, elsewhere() as second:
        number = write(first, "first")
        audit.seal()
        factories.take(pool)
        second.execute("SELECT nextval('pools_event_number')")
        first.commit()
        audit.seal()
        assert sealed_through() >= number
        assert CountedUntil.objects.get(log=audit.LOG).waits_for
    audit.seal()
    assert not audit.verify().faults


def test_a_number_that_was_drawn_and_not_used_yet_is_waited_for() -> None:
    factories.pool("10.0.0.0/24")
    with elsewhere() as slow:
        row = slow.execute("SELECT nextval('pools_event_number')").fetchone()
        assert row is not None
        factories.pool("10.1.0.0/24")
        audit.seal()
        audit.seal()
        assert sealed_through() < row[0]


def test_readers_are_not_waited_for() -> None:
    factories.pool("10.0.0.0/24")
    with elsewhere() as reader:
        reader.execute("SELECT last_value FROM pools_event_number")
        reader.execute("SELECT count(*) FROM pools_block")
        assert audit.seal() > 0


def test_two_sealers_at_once_make_one_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "SIZE", 10)
    pool = factories.pool("10.0.0.0/24")
    for _ in range(10):
        factories.ask(pool, *factories.holders(20))

    def work() -> None:
        for _ in range(20):
            audit.seal()
        close_old_connections()
        connection.close()

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = audit.verify()
    assert not report.faults
    assert report.unsealed == 0
    assert report.events >= BlockEvent.objects.count()
    assert [audit_segment.pk for audit_segment in AuditSegment.objects.all()] == list(
        range(1, report.segments + 1)
    )


def test_a_sealer_that_dies_leaves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    factories.pool("10.0.0.0/24")
    audit.seal()
    before = AuditSegment.objects.count()
    factories.take(factories.pool("10.1.0.0/24"))

    def dies(*_: object) -> None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")

    with monkeypatch.context() as patch:
        patch.setattr(CountedUntil, "save", dies)
        with pytest.raises(DatabaseError):
            audit.seal()
    connection.close()
    assert AuditSegment.objects.count() == before
    assert audit.seal() > 0
    assert not audit.verify().faults
