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
def test_cold_start(count: int, world: small.World) -> None:
    for number in range(count):
        world.put(f"node-{number:05}")
    run = world.reconcile()
    assert run.succeeded, (run.error_code, run.error, run.kinds)
    assert run.kinds["CiliumNode"] == {"seen": count, "changed": count, "written": 0, "failed": 0}
    assert world.names() == [f"node-{number:05}" for number in range(count)]
    assert world.nodes.ingested == world.names()
    assert len(world.fake.log.select("list", "ciliumnodes")) == max(1, -(-count // 500))


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


def test_a_kind_that_was_never_listed_concludes_nothing(world: small.World) -> None:
    """After a restart: neither what is desired is asked, nor what is odd, before the first list."""
    calls: list[Any] = []
    world.nodes.writes = lambda context: calls.append(context) or ()  # type: ignore[func-returns-value]
    world.nodes.reports = lambda context: calls.append(context) or ()  # type: ignore[func-returns-value]
    world.fake.faults.add(verb="list", path="ciliumnodes", status=500)
    assert not world.reconcile().succeeded
    assert not calls
    assert world.reconcile().succeeded
    assert len(calls) == 2


def test_a_second_pass_writes_nothing(world: small.World) -> None:
    world.put("a", "b", "c")
    world.put("bad", poison="yes")
    world.put("waits", pending="yes")
    world.nodes.writes = small.labelling("a", "b")
    first = world.reconcile()
    assert first.kinds["CiliumNode"]["written"] == 2
    world.fake.log.clear()
    before = written()
    second = world.reconcile()
    assert second.kinds["CiliumNode"] == {"seen": 5, "changed": 0, "written": 0, "failed": 1}
    assert not world.fake.log.writes
    assert not world.fake.log.select("patch")
    assert not world.fake.log.select("get", "ciliumnodes")
    assert written() == before
    assert before["pools_observedobject"]


def test_dry_run_writes_nothing_and_shows_a_plan(world: small.World) -> None:
    world.put("a")
    world.nodes.writes = lambda context: [
        small.labelled(row.name) for row in world.rows() if context.dry_run
    ]
    before = Connection.objects.values().get()
    run = world.reconcile(trigger=Trigger.DRY_RUN)
    assert run.kinds["CiliumNode"]["would"] == 1
    assert run.kinds["CiliumNode"]["plan"] == [
        {
            "namespace": "",
            "name": "a",
            "fields": [{"path": "metadata.labels.cadastre", "desired": "yes", "observed": None}],
        }
    ]
    assert not world.fake.log.writes
    assert not world.rows()
    after = Connection.objects.values().get()
    assert {key for key in after if after[key] != before[key]} == {"fence"}
