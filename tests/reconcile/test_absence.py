"""What a list says of objects: which are kept, and when one is gone (rule `absence-needs-two-lists`)."""

import dataclasses
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from pools.clusters.reconcile import storage
from pools.clusters.reconcile.handler import Handler
from pools.core.kubernetes.resources import Manifest
from pools.models import Connection, Now, ObservedObject
from tests.kube.fake import FakeCluster
from tests.reconcile import small


class Choosy(small.Small):
    """Wants what is labelled, and keeps nothing but its identity and labels."""

    def is_relevant(self, manifest: Manifest) -> bool:
        return "wanted" in manifest["metadata"].get("labels", {})

    def project(self, manifest: Manifest) -> Manifest:
        stored = ("name", "uid", "resourceVersion", "labels")
        return {"metadata": {key: manifest["metadata"][key] for key in stored}}


def labelled_node(name: str) -> Manifest:
    return small.node(name, wanted="yes")


def test_a_list_keeps_what_is_wanted(fake: FakeCluster, connection: Connection) -> None:
    nodes = Choosy()
    fake.put(labelled_node("a"))
    fake.put(small.node("b"))
    run = small.reconcile(connection, nodes)
    assert (run.kinds["CiliumNode"]["seen"], nodes.ingested) == (1, ["a"])
    (row,) = small.rows(connection)
    assert set(row.manifest) == {"metadata"}
    assert small.reconcile(connection, nodes).kinds["CiliumNode"]["changed"] == 0


def tell(connection: Connection, nodes: Handler, *events: tuple[str, Manifest]) -> None:
    assert not small.ingest(connection, nodes.kind, [nodes], *events).error_code


def test_a_watch_keeps_what_is_wanted(fake: FakeCluster, connection: Connection) -> None:
    nodes = Choosy()
    small.reconcile(connection, nodes)
    tell(
        connection,
        nodes,
        ("ADDED", fake.put(labelled_node("a"))),
        ("ADDED", fake.put(small.node("b"))),
    )
    assert nodes.ingested == ["a"]
    assert set(small.rows(connection)[0].manifest) == {"metadata"}
    tell(connection, nodes, ("MODIFIED", fake.put(small.node("a"))))
    assert (nodes.forgotten, small.rows(connection)) == (["a"], [])


@pytest.mark.parametrize("installed", [True, False])
def test_a_kind_that_is_read_only_with_another(
    installed: bool, fake: FakeCluster, connection: Connection
) -> None:
    other = small.CLAIM if installed else dataclasses.replace(small.CLAIM, plural="nothings")
    read = dataclasses.replace(small.NODE, only_with=other)
    nodes = small.Small(resources=(read,))
    fake.put(small.node("a"))
    run = small.reconcile(connection, nodes)
    assert (nodes.ingested, run.error_code) == (["a"] if installed else [], "")


def later(seconds: float) -> None:
    """The first list without an object was so long ago."""
    rows = ObservedObject.objects.filter(missed_at__isnull=False)
    rows.update(missed_at=F("missed_at") - timedelta(seconds=seconds))


def test_one_list_without_it_is_not_its_end(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    fake.put(small.node("a"))
    small.reconcile(connection, nodes)
    fake.remove("ciliumnodes", "a")
    run = small.reconcile(connection, nodes)
    assert "gone" not in run.kinds["CiliumNode"]
    assert small.rows(connection)[0].missed_at is not None


@pytest.mark.parametrize(
    ("seconds", "forgotten"), [(storage.GRACE - 5, []), (storage.GRACE, ["a"])]
)
def test_two_complete_lists_apart(
    seconds: float,
    forgotten: list[str],
    fake: FakeCluster,
    connection: Connection,
    nodes: small.Small,
) -> None:
    fake.put(small.node("a"))
    small.reconcile(connection, nodes)
    fake.remove("ciliumnodes", "a")
    small.reconcile(connection, nodes)
    later(seconds)
    small.reconcile(connection, nodes)
    assert nodes.forgotten == forgotten
    assert small.names(connection) == ([] if forgotten else ["a"])


def test_a_failed_list_between_two_counts_for_nothing(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    fake.put(small.node("a"))
    small.reconcile(connection, nodes)
    for _ in range(3):
        fake.faults.add(verb="list", path="ciliumnodes", status=500)
        small.reconcile(connection, nodes)
        later(3600)
    assert small.rows(connection)[0].missed_at is None


def test_it_is_back(fake: FakeCluster, connection: Connection, nodes: small.Small) -> None:
    stored = fake.put(small.node("a"))
    small.reconcile(connection, nodes)
    ObservedObject.objects.update(missed_at=Now() - timedelta(hours=1))
    run = small.reconcile(connection, nodes)
    assert run.kinds["CiliumNode"]["changed"] == 0
    (row,) = small.rows(connection)
    assert (row.missed_at, row.uid) == (None, stored["metadata"]["uid"])


@pytest.mark.django_db(transaction=True)
def test_what_came_in_after_the_list_began_is_not_missed(
    fake: FakeCluster, nodes: small.Small
) -> None:
    """The rows are read first, the list second: a row that is younger than the list is not judged."""
    row = small.connect(fake)
    fake.put(small.node("a"))
    small.reconcile(row, nodes)

    def arrives() -> None:
        (like,) = small.rows(row)
        like.pk, like.uid, like.name = None, "another", "b"
        like.save()
        connection.close()  # of the server's thread

    fake.faults.add(verb="list", path="ciliumnodes", call=arrives)
    small.reconcile(row, nodes)
    assert [item.missed_at for item in small.rows(row)] == [None, None]
    small.reconcile(row, nodes)
    assert [item.missed_at is None for item in small.rows(row)] == [True, False]


def test_the_same_name_and_another_uid_is_another_object(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    first = fake.put(small.node("a"))["metadata"]["uid"]
    fake.put(small.node("b"))
    small.reconcile(connection, nodes)
    fake.remove("ciliumnodes", "a")
    second = fake.put(small.node("a"))["metadata"]["uid"]
    assert first != second
    nodes.ingested.clear()
    run = small.reconcile(connection, nodes)
    # The new one is taken in before the old one is forgotten: what it still uses is never free.
    assert (nodes.ingested, nodes.forgotten) == (["a"], ["a"])
    assert run.kinds["CiliumNode"]["gone"] == 1
    assert small.rows(connection)[0].uid == second
    assert small.names(connection) == ["a", "b"]


def test_replaced_while_it_was_missed(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    fake.put(small.node("a"))
    small.reconcile(connection, nodes)
    fake.remove("ciliumnodes", "a")
    small.reconcile(connection, nodes)
    fake.put(small.node("a"))
    small.reconcile(connection, nodes)
    assert nodes.forgotten == ["a"]
    assert len(small.rows(connection)) == 1


def test_an_event_that_was_lost_is_found_by_the_next_list(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    fake.put(small.node("a"))
    small.reconcile(connection, nodes)
    fake.put(small.node("a", zone="z"))
    fake.put(small.node("new"))
    nodes.ingested.clear()
    small.reconcile(connection, nodes)
    assert sorted(nodes.ingested) == ["a", "new"]
    assert small.rows(connection)[0].manifest["metadata"]["labels"] == {"zone": "z"}


def test_a_list_begins_again_when_its_continue_expired(db: None, nodes: small.Small) -> None:
    with FakeCluster() as fake:
        fake.crds("cilium.io_ciliumnodes")
        for number in range(501):
            fake.put(small.node(f"node-{number:03}"))
        connection = small.connect(fake)
        fake.faults.add(verb="list", path="ciliumnodes", skip=1, status=410, reason="Expired")
        run = small.reconcile(connection, nodes)
    assert run.succeeded
    assert len(set(small.names(connection))) == 501
