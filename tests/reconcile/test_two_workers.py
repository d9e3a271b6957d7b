"""Rule `stale-worker-writes-nothing`: here or in the cluster."""

import signal
from typing import Any

import pytest

from pools.clusters.reconcile import leases, registry, sync
from pools.models import Block, Connection, ManagedResource, SyncRun
from tests import eventually, factories
from tests.kube.fake import FakeCluster
from tests.reconcile import processes, small

pytestmark = [pytest.mark.django_db(transaction=True)]
NODES = 12
LONG = 120  # seconds that a process may take to start and to end on a slow machine


@pytest.fixture
def connection(fake: FakeCluster, transactional_db: None) -> Connection:
    """Nodes that ask for addresses, which this register hands out."""
    row = small.connect(fake, managed_resources=[ManagedResource.POD_CIDRS])
    factories.pool("10.0.0.0/20", within=row.cluster, name="default", category="pod", mask=24)
    for number in range(NODES):
        fake.put(small.node(f"n{number:02}"))
    return row


def lists(fake: FakeCluster) -> dict[str, str]:
    """Which node lists each block; none is listed twice."""
    result: dict[str, str] = {}
    for node in fake.objects("ciliumnodes"):
        for entry in node["spec"]["ipam"]["pools"].get("allocated", []):
            for cidr in entry["cidrs"]:
                assert cidr not in result
                result[cidr] = node["metadata"]["name"]
    return result


def held() -> dict[str, str]:
    rows = Block.objects.filter(state="held").values_list("cidr", "holder_id")
    return {str(cidr): holder for cidr, holder in rows}


def each_has_one(fake: FakeCluster) -> None:
    assert lists(fake) == held()
    assert sorted(lists(fake).values()) == [f"n{number:02}" for number in range(NODES)]


@pytest.mark.exhaustive
def test_replicas_at_once(fake: FakeCluster, connection: Connection) -> None:
    """Three processes want to pass over one cluster, and all of them do, one after the other."""
    arguments = ("cilium", str(connection.pk))
    with (
        processes.started(*arguments) as first,
        processes.started(*arguments) as second,
        processes.started(*arguments) as third,
    ):
        everybody = (first, second, third)
        assert [item.wait(LONG) for item in everybody] == [0, 0, 0]
        outputs = [item.output for item in everybody]
    assert all("ended True" in item for item in outputs), outputs
    each_has_one(fake)
    # Nobody wrote what another had written.
    assert len([write for write in fake.log.writes if write.verb == "update"]) == NODES
    assert len({item.split()[1] for item in outputs}) == SyncRun.objects.count() == 3


@pytest.mark.exhaustive
@pytest.mark.parametrize("where", ["list", "update"])
def test_stopped_for_longer_than_its_lease(
    where: str, fake: FakeCluster, connection: Connection
) -> None:
    """SIGSTOP in the midst of a pass; another worker takes over and ends it; SIGCONT."""
    stopped: list[Any] = []
    with processes.started("cilium", str(connection.pk)) as first:

        def stop() -> None:
            first.send(signal.SIGSTOP)
            stopped.append(fake.log.select(where, "ciliumnodes")[-1])

        skip = {"list": 0, "update": 5}[where]  # tried out and written, twice; tried out
        fake.faults.add(verb=where, path="ciliumnodes", skip=skip, call=stop)
        eventually.until(lambda: stopped and stopped[0].status, LONG)
        Connection.objects.update(leased_until="2000-01-01T00:00:00Z")
        lease = leases.take(connection.pk, leases.worker_name())
        assert lease is not None
        assert sync.run(lease, registry.HANDLERS).succeeded
        each_has_one(fake)
        before, row = len(fake.log.writes), Connection.objects.values().get()
        events = list(Block.objects.order_by("id").values())
        first.send(signal.SIGCONT)
        assert first.wait(LONG) == 0
        assert "ended lease_lost" in first.output
    assert len(fake.log.writes) == before
    assert Connection.objects.values().get() == row
    assert list(Block.objects.order_by("id").values()) == events
    each_has_one(fake)
