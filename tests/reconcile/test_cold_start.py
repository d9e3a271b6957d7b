"""From nothing to all that a cluster has; then nothing more is written."""

from collections.abc import Iterator
from typing import Any

import pytest
from django.db import connection as database

from pools.models import Connection, Trigger
from tests.kube.fake import FakeCluster
from tests.reconcile import small
from tests.reconcile.conftest import CRDS

# The lease, the positions and the run itself are bookkeeping of every pass.
_BOOKKEEPING = ("pools_connection", "pools_syncrun")


def written() -> dict[str, int]:
    """How many rows of each table this transaction has written so far."""
    with database.cursor() as cursor:
        cursor.execute(
            "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables"
        )
        return {name: count for name, count in cursor.fetchall() if name not in _BOOKKEEPING}


@pytest.mark.sample(3)
@pytest.mark.parametrize("count", [0, 1, 1_203])
def test_cold_start(
    count: int, fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    for number in range(count):
        fake.put(small.node(f"node-{number:05}"))
    run = small.reconcile(connection, nodes)
    assert run.succeeded, (run.error_code, run.error, run.kinds)
    assert run.kinds["CiliumNode"] == {"seen": count, "changed": count, "written": 0, "failed": 0}
    assert small.names(connection) == [f"node-{number:05}" for number in range(count)]
    assert nodes.ingested == small.names(connection)
    assert len(fake.log.select("list", "ciliumnodes")) == max(1, -(-count // 500))


@pytest.fixture
def large() -> Iterator[FakeCluster]:
    """With 10,000 nodes, before a transaction of the test could wait for them."""
    with FakeCluster() as running:
        running.crds(*CRDS)
        for number in range(10_000):
            running.put(small.node(f"node-{number:05}"))
        yield running


@pytest.mark.exhaustive
def test_ten_thousand(large: FakeCluster, db: None, nodes: small.Small) -> None:
    connection = small.connect(large)
    run = small.reconcile(connection, nodes)
    assert run.kinds["CiliumNode"]["changed"] == len(small.rows(connection)) == 10_000
    assert small.reconcile(connection, nodes).kinds["CiliumNode"]["changed"] == 0


def test_a_kind_that_was_never_listed_concludes_nothing(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    """After a restart: neither what is desired is asked, nor what is odd, before the first list."""
    calls: list[Any] = []
    nodes.writes = lambda context: calls.append(context) or ()  # type: ignore[func-returns-value]
    nodes.reports = lambda context: calls.append(context) or ()  # type: ignore[func-returns-value]
    fake.faults.add(verb="list", path="ciliumnodes", status=500)
    assert not small.reconcile(connection, nodes).succeeded
    assert not calls
    assert small.reconcile(connection, nodes).succeeded
    assert len(calls) == 2


def test_a_second_pass_writes_nothing(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    for name in ("a", "b", "c"):
        fake.put(small.node(name))
    fake.put(small.node("bad", poison="yes"))
    fake.put(small.node("waits", pending="yes"))
    nodes.writes = small.labelling("a", "b")
    first = small.reconcile(connection, nodes)
    assert first.kinds["CiliumNode"]["written"] == 2
    fake.log.clear()
    before = written()
    second = small.reconcile(connection, nodes)
    assert second.kinds["CiliumNode"] == {"seen": 5, "changed": 0, "written": 0, "failed": 1}
    assert not fake.log.writes
    assert not fake.log.select("patch")
    assert not fake.log.select("get", "ciliumnodes")
    assert written() == before
    assert before["pools_observedobject"]


def test_dry_run_writes_nothing_and_shows_a_plan(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    fake.put(small.node("a"))
    nodes.writes = lambda context: [
        small.labelled(row.name) for row in small.rows(connection) if context.dry_run
    ]
    before = Connection.objects.values().get()
    run = small.reconcile(connection, nodes, trigger=Trigger.DRY_RUN)
    assert run.kinds["CiliumNode"]["would"] == 1
    assert run.kinds["CiliumNode"]["plan"] == [
        {
            "namespace": "",
            "name": "a",
            "fields": [{"path": "metadata.labels.cadastre", "desired": "yes", "observed": None}],
        }
    ]
    assert not fake.log.writes
    assert not small.rows(connection)
    after = Connection.objects.values().get()
    assert {key for key in after if after[key] != before[key]} == {"fence"}
