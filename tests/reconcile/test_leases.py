"""Who works on a cluster: rules `one-worker-for-a-cluster` and `stale-worker-writes-nothing`."""

import dataclasses
import signal
import threading
from typing import Any

import pytest
from django.db import connection as database, transaction

from pools.clusters.reconcile import leases, sync
from pools.core import errors
from pools.models import Connection, ManagedResource, SyncRun
from tests import eventually, factories
from tests.concurrent import threads
from tests.kube.fake import FakeCluster
from tests.reconcile import processes, small


def expire() -> None:
    with database.cursor() as cursor:
        cursor.execute("UPDATE pools_connection SET leased_until = ipam_clock() - interval '1 s'")


def test_one_at_a_time(connection: Connection) -> None:
    first = leases.take(connection.pk, "one")
    assert first is not None
    assert leases.take(connection.pk, "two") is None
    assert leases.borrow(connection.pk, "two") is None
    assert leases.due_connections() == []
    leases.release(first)
    second = leases.take(connection.pk, "two")
    assert second is not None
    assert second.fence == first.fence + 1


def test_a_lease_that_ended_is_taken_over_and_its_holder_writes_nothing(
    connection: Connection,
) -> None:
    first = leases.take(connection.pk, "one")
    assert first is not None
    expire()
    with pytest.raises(leases.LeaseLost), leases.transaction_under_lease(first, factories.BY):
        pytest.fail("a lease that ended is no lease, also when nobody has the next one")
    assert not leases.renew(first)
    second = leases.take(connection.pk, "two")
    assert second is not None
    leases.record_failure(first, code="x", message="late")
    row = Connection.objects.get()
    assert (row.leased_by, row.error_code) == ("two", "")
    with leases.transaction_under_lease(second, factories.BY):
        pass


def test_a_paused_cluster_is_left_alone_at_once(connection: Connection) -> None:
    lease = leases.take(connection.pk, "one")
    assert lease is not None
    Connection.objects.update(paused=True)
    with pytest.raises(errors.ConnectionPaused):
        leases.prove(lease)
    leases.release(lease)
    assert leases.take(connection.pk, "one") is None
    assert leases.due_connections() == []


def test_a_pass_that_is_paused_meanwhile_is_no_failure(world: small.World) -> None:
    def pause(_: Any) -> tuple[()]:
        Connection.objects.update(paused=True)
        return ()

    world.put("a")
    world.nodes.writes = pause
    run = world.reconcile()
    assert run.error_code == "connection_paused"
    row = Connection.objects.get()
    assert (row.failures, row.leased_until) == (0, None)


def test_a_change_during_a_pass_makes_it_due_again(world: small.World) -> None:
    """What the pass has read before is old: the change must not wait ten minutes."""
    world.nodes.writes = lambda _: leases.nudge(world.connection.cluster_id, patient=True) or ()  # type: ignore[func-returns-value]
    world.reconcile()
    assert leases.due_connections() == [world.connection.pk]
    world.nodes.writes = lambda _: ()
    world.reconcile()
    assert leases.due_connections() == []


@pytest.mark.django_db(transaction=True)
def test_no_take_over_while_a_transaction_is_open(fake: FakeCluster) -> None:
    """Its lease ends in the middle of it: what was proved stays true until its end."""
    row = small.connect(fake)
    first = leases.take(row.pk, "one")
    assert first is not None
    began, goes_on = threading.Event(), threading.Event()

    def writes() -> None:
        with leases.transaction_under_lease(first, factories.BY):
            began.set()
            assert goes_on.wait(20)

    def takes() -> list[bool]:
        assert began.wait(20)
        expire()
        with_it_open = leases.take(row.pk, "two") is not None
        # A change of the register does not wait for the pass either.
        with transaction.atomic():
            leases.nudge(row.cluster_id)
        goes_on.set()
        return [with_it_open]

    results = threads.together([writes, takes])
    assert threads.failures(results) == []
    assert results[1] == [False]
    assert leases.take(row.pk, "two") is not None


@pytest.mark.exhaustive
@pytest.mark.django_db(transaction=True)
def test_a_long_answer_does_not_cost_the_lease(
    fake: FakeCluster, nodes: small.Small, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "_LEASES", dataclasses.replace(leases._LEASES, seconds=4))
    row = small.connect(fake)
    fake.put(small.node("a"))
    fake.faults.add(verb="list", path="ciliumnodes", delay=6)
    assert small.reconcile(row, nodes).succeeded


@pytest.mark.django_db(transaction=True)
def test_a_worker_that_was_stopped_past_its_lease_writes_nothing(fake: FakeCluster) -> None:
    row = small.connect(fake, managed_resources=[ManagedResource.POD_CIDRS])
    for name in "ab":
        fake.put(small.node(name))
    stopped = threading.Event()
    with processes.started("work", str(row.pk)) as worker:

        def stop() -> None:
            worker.send(signal.SIGSTOP)
            stopped.set()

        # In the middle of its work: the rows are there, nothing is written to the cluster yet.
        fake.faults.add(verb="patch", call=stop)
        assert stopped.wait(120)  # a new process that reads all our code
        assert small.names(row) == ["a", "b"]
        expire()
        mine = leases.take(row.pk, "another")
        assert mine is not None
        fake.put(small.node("c"))
        before = {name: fake.object("ciliumnodes", name)["metadata"] for name in "ab"}
        worker.send(signal.SIGCONT)
        eventually.until(lambda: "ended" in worker.output, 120)
        assert "ended lease_lost" in worker.output
    assert {name: fake.object("ciliumnodes", name)["metadata"] for name in "ab"} == before
    assert not fake.log.writes
    now = Connection.objects.get()
    assert (now.leased_by, now.fence, now.failures) == ("another", mine.fence, 0)


@pytest.mark.sample(3)
@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("verb", ["list", "patch", "get"])
def test_killed_in_the_middle_the_next_worker_completes_it(
    verb: str, fake: FakeCluster, nodes: small.Small
) -> None:
    row = small.connect(fake, managed_resources=[ManagedResource.POD_CIDRS])
    for name in "abc":
        fake.put(small.node(name))
    reached = threading.Event()
    with processes.started("work", str(row.pk)) as worker:

        def kill() -> None:
            worker.send(signal.SIGKILL)
            reached.set()

        # The third PATCH is in the second object: its first one is written.
        fake.faults.add(verb=verb, skip=3 if verb == "patch" else 0, call=kill)
        assert reached.wait(120)
        worker.wait(120)
    assert leases.take(row.pk, "another") is None
    assert SyncRun.objects.get().ended_at is None
    expire()
    assert leases.due_connections() == [row.pk]
    nodes.writes = small.labelling("a", "b", "c")
    assert small.reconcile(row, nodes).succeeded
    assert small.names(row) == ["a", "b", "c"]
    for name in "abc":
        assert fake.object("ciliumnodes", name)["metadata"]["labels"] == {"cadastre": "yes"}
    fake.log.clear()
    assert small.reconcile(row, nodes).kinds["CiliumNode"]["changed"] == 0
    assert not fake.log.writes


@pytest.mark.django_db(transaction=True)
def test_a_lost_database_connection_hands_the_lease_back(
    fake: FakeCluster, nodes: small.Small
) -> None:
    row = small.connect(fake)
    fake.put(small.node("a"))

    def lose(_: Any) -> tuple[()]:
        with database.cursor() as cursor:
            cursor.execute("SELECT pg_terminate_backend(pg_backend_pid())")
        return ()

    nodes.writes = lose
    run = small.reconcile(row, nodes)
    assert run.error_code == "ipam_unavailable"
    now = Connection.objects.get()
    assert (now.error_code, now.failures, now.leased_until) == ("ipam_unavailable", 1, None)
    nodes.writes = lambda _: ()
    assert small.reconcile(row, nodes).succeeded


def test_an_error_of_our_own_hands_the_lease_back(world: small.World) -> None:
    class Ends(Exception):  # noqa: N818
        """As a worker's time limit is raised."""

    def limit(_: Any) -> tuple[()]:
        raise Ends

    world.nodes.writes = limit
    with pytest.raises(Ends):
        world.reconcile()
    now = Connection.objects.get()
    assert (now.error_code, now.failures, now.leased_until) == ("internal_error", 1, None)
    assert SyncRun.objects.get().error_code == sync.ReconcileFailed.code
