"""Point 4: a bookmark moves the position on, and no object changes for it."""

from collections.abc import Iterator

import pytest

from pools.clusters.reconcile import connecting, watchers
from pools.clusters.reconcile.streams import Stream
from pools.clusters.reconcile.watchers import Position
from pools.models import Connection, SyncRun
from tests import eventually
from tests.kube.fake import FakeCluster
from tests.reconcile import small

LONG = 60


@pytest.fixture
def position(fake: FakeCluster, connection: Connection, nodes: small.Small) -> Position:
    """Where a list left the kind."""
    fake.put(small.node("a"))
    small.reconcile(connection, nodes)
    result = watchers.read(Connection.objects.get().positions, nodes.kind)
    assert result is not None
    return result


@pytest.fixture
def watch(fake: FakeCluster, connection: Connection) -> Iterator[list[Stream]]:
    """The streams of a test, which end with it."""
    streams: list[Stream] = []
    yield streams
    for stream in streams:
        stream.stop()
    eventually.until(lambda: all(stream.ended for stream in streams), LONG)


def _begin(
    watch: list[Stream], fake: FakeCluster, connection: Connection, position: Position
) -> Stream:
    watches = len(fake.log.select("watch", "ciliumnodes"))
    stream = Stream(
        connection, small.NODE, position, open_client=connecting.client_for, on_event=lambda: None
    )
    watch.append(stream)
    stream.start()
    eventually.until(lambda: len(fake.log.select("watch", "ciliumnodes")) > watches, LONG)
    return stream


def _moved(fake: FakeCluster, stream: Stream) -> tuple[list[object], Position]:
    """What was told until the position is another one."""
    events: list[object] = []

    def moved() -> bool:
        fake.bookmark()
        batch = stream.take()
        assert batch is not None
        events.extend(batch[0])
        return batch[1] != stream.stored

    eventually.until(moved, LONG)
    last = stream.take()
    assert last is not None
    return events, last[1]


def test_a_bookmark_moves_the_position_and_no_object(
    fake: FakeCluster, connection: Connection, position: Position, watch: list[Stream]
) -> None:
    runs, before = SyncRun.objects.count(), small.rows(connection)
    stream = _begin(watch, fake, connection, position)
    # Something else happens in the cluster.
    fake.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    events, to = _moved(fake, stream)
    assert events == []
    assert to.version != position.version
    assert watchers.move(connection.pk, "CiliumNode", position, to)
    assert (SyncRun.objects.count(), small.rows(connection)) == (runs, before)


def test_whoever_watches_next_goes_on_from_it(
    fake: FakeCluster, connection: Connection, position: Position, watch: list[Stream]
) -> None:
    """What was told before it is not told again, and nothing that comes after it is left out."""
    stream = _begin(watch, fake, connection, position)
    fake.put(small.node("told"))
    eventually.until(lambda: stream.waiting, LONG)
    fake.put({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}})
    _, to = _moved(fake, stream)
    stream.stop()
    fake.put(small.node("meanwhile"))
    following = _begin(watch, fake, connection, to)
    fake.put(small.node("next"))
    names: list[str] = []

    def all_told() -> bool:
        batch = following.take()
        assert batch is not None
        names.extend(manifest["metadata"]["name"] for _, manifest in batch[0])
        return "next" in names

    eventually.until(all_told, LONG)
    assert names == ["meanwhile", "next"]
