"""What a list says of objects: which are kept, and when one is gone (rule `absence-needs-two-lists`)."""

import dataclasses
from datetime import timedelta

import pytest
from django.db import connection
from django.db.models import F

from pools.clusters.reconcile import storage
from pools.core.kubernetes.resources import Manifest
from pools.models import Now, ObservedObject
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


def test_a_list_keeps_what_is_wanted(world: small.World) -> None:
    world.nodes = Choosy()
    world.fake.put(labelled_node("a"))
    world.put("b")
    run = world.reconcile()
    assert (run.kinds["CiliumNode"]["seen"], world.nodes.ingested) == (1, ["a"])
    (row,) = world.rows()
    assert set(row.manifest) == {"metadata"}
    assert world.reconcile().kinds["CiliumNode"]["changed"] == 0


def tell(world: small.World, *events: tuple[str, Manifest]) -> None:
    run = small.ingest(world.connection, world.nodes.kind, [world.nodes], *events)
    assert not run.error_code


def test_a_watch_keeps_what_is_wanted(world: small.World) -> None:
    world.nodes = Choosy()
    world.reconcile()
    tell(
        world,
        ("ADDED", world.fake.put(labelled_node("a"))),
        ("ADDED", world.fake.put(small.node("b"))),
    )
    assert world.nodes.ingested == ["a"]
    assert set(world.rows()[0].manifest) == {"metadata"}
    tell(world, ("MODIFIED", world.fake.put(small.node("a"))))
    assert (world.nodes.forgotten, world.rows()) == (["a"], [])


@pytest.mark.parametrize("installed", [True, False])
def test_a_kind_that_is_read_only_with_another(installed: bool, world: small.World) -> None:
    other = small.CLAIM if installed else dataclasses.replace(small.CLAIM, plural="nothings")
    read = dataclasses.replace(small.NODE, only_with=other)
    world.nodes = small.Small(resources=(read,))
    world.put("a")
    run = world.reconcile()
    assert (world.nodes.ingested, run.error_code) == (["a"] if installed else [], "")


def later(seconds: float) -> None:
    """The first list without an object was so long ago."""
    rows = ObservedObject.objects.filter(missed_at__isnull=False)
    rows.update(missed_at=F("missed_at") - timedelta(seconds=seconds))


def test_one_list_without_it_is_not_its_end(world: small.World) -> None:
    world.put("a")
    world.reconcile()
    world.remove("a")
    run = world.reconcile()
    assert "gone" not in run.kinds["CiliumNode"]
    assert world.rows()[0].missed_at is not None


@pytest.mark.parametrize(
    ("seconds", "forgotten"), [(storage.GRACE - 5, []), (storage.GRACE, ["a"])]
)
def test_two_complete_lists_apart(seconds: float, forgotten: list[str], world: small.World) -> None:
    world.put("a")
    world.reconcile()
    world.remove("a")
    world.reconcile()
    later(seconds)
    world.reconcile()
    assert world.nodes.forgotten == forgotten
    assert world.names() == ([] if forgotten else ["a"])


def test_a_failed_list_between_two_counts_for_nothing(world: small.World) -> None:
    world.put("a")
    world.reconcile()
    for _ in range(3):
        world.fake.faults.add(verb="list", path="ciliumnodes", status=500)
        world.reconcile()
        later(3600)
    assert world.rows()[0].missed_at is None


def test_it_is_back(world: small.World) -> None:
    stored = world.fake.put(small.node("a"))
    world.reconcile()
    ObservedObject.objects.update(missed_at=Now() - timedelta(hours=1))
    run = world.reconcile()
    assert run.kinds["CiliumNode"]["changed"] == 0
    (row,) = world.rows()
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


def test_the_same_name_and_another_uid_is_another_object(world: small.World) -> None:
    first = world.fake.put(small.node("a"))["metadata"]["uid"]
    world.put("b")
    world.reconcile()
    world.remove("a")
    second = world.fake.put(small.node("a"))["metadata"]["uid"]
    assert first != second
    world.nodes.ingested.clear()
    run = world.reconcile()
    # The new one is taken in before the old one is forgotten: what it still uses is never free.
    assert (world.nodes.ingested, world.nodes.forgotten) == (["a"], ["a"])
    assert run.kinds["CiliumNode"]["gone"] == 1
    assert world.rows()[0].uid == second
    assert world.names() == ["a", "b"]


def test_replaced_while_it_was_missed(world: small.World) -> None:
    world.put("a")
    world.reconcile()
    world.remove("a")
    world.reconcile()
    world.put("a")
    world.reconcile()
    assert world.nodes.forgotten == ["a"]
    assert len(world.rows()) == 1


def test_an_event_that_was_lost_is_found_by_the_next_list(world: small.World) -> None:
    world.put("a")
    world.reconcile()
    world.put("a", zone="z")
    world.put("new")
    world.nodes.ingested.clear()
    world.reconcile()
    assert sorted(world.nodes.ingested) == ["a", "new"]
    assert world.rows()[0].manifest["metadata"]["labels"] == {"zone": "z"}


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
