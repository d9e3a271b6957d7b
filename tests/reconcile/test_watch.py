"""`manage.py watch`: events reach the register within seconds, whoever dies."""

import signal

import pytest

from pools.clusters.reconcile import watchers
from pools.models import Connection, ManagedResource, SyncRun, Trigger, Watcher
from tests import eventually
from tests.kube.fake import FakeCluster
from tests.reconcile import processes, small

pytestmark = [pytest.mark.django_db(transaction=True)]


@pytest.fixture
def connection(fake: FakeCluster, transactional_db: None) -> Connection:
    row = small.connect(fake)
    small.reconcile(row, small.Small())
    return row


def streams(fake: FakeCluster) -> int:
    """How many watches the cluster was asked for."""
    return len(fake.log.select("watch", "ciliumnodes"))


def test_what_happens_reaches_the_register(fake: FakeCluster, connection: Connection) -> None:
    with processes.started("watch"):
        eventually.until(lambda: streams(fake))
        lists = len(fake.log.select("list"))
        fake.put(small.node("a"))
        eventually.until(lambda: small.names(connection) == ["a"])
        fake.put(small.node("a", zone="z"))
        eventually.until(lambda: "zone" in small.rows(connection)[0].manifest["metadata"]["labels"])
        fake.remove("ciliumnodes", "a")
        eventually.until(lambda: not small.rows(connection))
        assert len(fake.log.select("list")) == lists, "a watch lists nothing"
        runs = SyncRun.objects.filter(trigger=Trigger.WATCH)
        eventually.until(lambda: runs.count() == 3)  # a run is stored when it has ended
    assert [run.kinds["CiliumNode"]["changed"] for run in runs.order_by("id")] == [1, 1, 0]
    assert all(run.succeeded for run in runs)


@pytest.mark.exhaustive
def test_what_follows_is_written_and_does_not_trigger_itself(
    fake: FakeCluster, transactional_db: None
) -> None:
    connection = small.connect(fake, managed_resources=[ManagedResource.POD_CIDRS])
    small.reconcile(connection, small.Small())
    with processes.started("watch"):
        eventually.until(lambda: streams(fake))
        fake.put(small.node("a"))
        eventually.until(
            lambda: "cadastre" in fake.object("ciliumnodes", "a")["metadata"]["labels"]
        )
        fake.put(small.node("b"))
        eventually.until(
            lambda: "cadastre" in fake.object("ciliumnodes", "b")["metadata"]["labels"]
        )
        eventually.until(lambda: SyncRun.objects.filter(trigger=Trigger.WATCH).count() == 2)
    assert len(fake.log.writes) == 2
    assert SyncRun.objects.filter(trigger=Trigger.WATCH).count() == 2


@pytest.mark.exhaustive
def test_gone_is_listed_again_and_bookmarks_move_on(
    fake: FakeCluster, connection: Connection
) -> None:
    with processes.started("watch"):
        eventually.until(lambda: streams(fake))
        before = SyncRun.objects.count()
        fake.put(small.node("a"))
        eventually.until(lambda: small.names(connection) == ["a"])
        eventually.until(lambda: SyncRun.objects.count() == before + 1)
        fake.faults.add(verb="watch", path="ciliumnodes", status=410, reason="Expired")
        Connection.objects.update(due_at="2100-01-01T00:00:00Z")
        fake.cut()

        def due() -> bool:
            row = Connection.objects.get()
            return row.due_at.year < 2100 and not row.positions

        eventually.until(due)
        fake.put(small.node("lost"))
        small.reconcile(connection, small.Small())
        fake.put(small.node("next"))
        eventually.until(lambda: small.names(connection) == ["a", "lost", "next"])


@pytest.mark.exhaustive
def test_kill_9_of_the_watcher(fake: FakeCluster, connection: Connection) -> None:
    """The next one goes on from where the register stands: nothing in between is lost."""
    with processes.started("watch") as first:
        eventually.until(lambda: streams(fake))
        first.send(signal.SIGKILL)
        first.wait()
    fake.put(small.node("meanwhile"))
    Watcher.objects.update(seen_at="2000-01-01T00:00:00Z")
    with processes.started("watch"):
        eventually.until(lambda: small.names(connection) == ["meanwhile"])


@pytest.mark.exhaustive
def test_sigterm_leaves_the_clusters_to_others(fake: FakeCluster, connection: Connection) -> None:
    with processes.started("watch") as first:
        eventually.until(lambda: streams(fake))
        assert Connection.objects.get().watched_by
        first.send(signal.SIGTERM)
        assert first.wait(60) == 0
    assert not Watcher.objects.exists()
    assert Connection.objects.get().watched_by == ""


@pytest.mark.exhaustive
def test_two_watchers_share_the_clusters(fake: FakeCluster, connection: Connection) -> None:
    with FakeCluster() as other:
        other.crds("cilium.io_ciliumnodes")
        second = small.connect(other)
        small.reconcile(second, small.Small())

        def holders() -> set[str]:
            return set(Connection.objects.values_list("watched_by", flat=True)) - {""}

        with processes.started("watch"), processes.started("watch"):
            eventually.until(lambda: len(holders()) == 2)
            for number, (cluster, row) in enumerate(((fake, connection), (other, second))):
                name = f"n-{number}"
                cluster.put(small.node(name))
                eventually.until(lambda row=row, name=name: small.names(row) == [name])


@pytest.mark.exhaustive
@pytest.mark.parametrize("how", ["paused", "deregistered", "credentials"])
def test_what_changes_is_followed_within_seconds(
    how: str, fake: FakeCluster, connection: Connection
) -> None:
    def ended() -> bool:
        fake.bookmark()  # the server notices by writing
        return all(item.seconds for item in fake.log.select("watch"))

    with processes.started("watch"):
        eventually.until(lambda: streams(fake))
        if how == "paused":
            Connection.objects.update(paused=True)
            eventually.until(lambda: Connection.objects.get().watched_by == "")
        elif how == "deregistered":
            connection.delete()
        else:
            token = fake.user("other", [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}])
            Connection.objects.update(sealed=small.sealed(fake, connection.cluster_id, token=token))
            eventually.until(lambda: fake.log.select("watch")[-1].user == "other")
            fake.put(small.node("a"))
            eventually.until(lambda: small.names(connection) == ["a"])
            return
        eventually.until(ended)
        before = streams(fake)
        fake.put(small.node("a"))
        assert streams(fake) == before


@pytest.mark.exhaustive
def test_a_cluster_that_hangs_holds_up_no_other(fake: FakeCluster, connection: Connection) -> None:
    with FakeCluster() as slow:
        slow.crds("cilium.io_ciliumnodes")
        hanging = small.connect(slow, managed_resources=[ManagedResource.POD_CIDRS])
        small.reconcile(hanging, small.Small())
        slow.faults.add(verb="patch", effect="hang", times=None)
        with processes.started("watch"):
            eventually.until(lambda: streams(fake) and streams(slow))
            slow.put(small.node("s"))
            eventually.until(lambda: slow.log.select("patch"))
            fake.put(small.node("a"))
            # Sooner than the 30 s after which the one that hangs is given up.
            eventually.until(lambda: small.names(connection) == ["a"], 25)
            assert not SyncRun.objects.filter(
                cluster=hanging.cluster, trigger=Trigger.WATCH
            ).exists()


def test_shares_are_equal_and_the_dead_are_inherited(
    fake: FakeCluster, connection: Connection
) -> None:
    rows = [connection]
    for _ in range(4):
        rows.append(small.connect(fake))
        rows[-1].cluster.save()
    assert len(watchers.claim("one", 100)) == 5
    assert len(watchers.claim("two", 100)) == 0
    assert len(watchers.claim("one", 100)) == 3
    assert len(watchers.claim("two", 100)) == 2
    Watcher.objects.filter(name="one").update(seen_at="2000-01-01T00:00:00Z")
    assert len(watchers.claim("two", 4)) == 4
    watchers.leave("two")
    assert len(watchers.claim("three", 100)) == 5


@pytest.mark.exhaustive
def test_a_stop_amidst_the_watchers_own_wait_is_heard(transactional_db: None) -> None:
    with processes.started("watch-stopped-amidst-its-wait") as watcher:
        assert watcher.wait() == 0
