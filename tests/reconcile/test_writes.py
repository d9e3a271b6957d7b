"""What is sent to a cluster: never blindly, never by force, and once."""

from typing import Any

import pytest

from pools.clusters import drift as drifts
from pools.clusters.reconcile.handler import SyncContext, Write
from pools.core.kubernetes.resources import Manifest
from pools.models import Drift, ObservedObject, Trigger
from tests import factories
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.reconcile import small


def counted(run: Any) -> tuple[int, int]:
    return run.kinds["CiliumNode"]["written"], run.kinds["CiliumNode"]["failed"]


@pytest.fixture
def node(fake: FakeCluster) -> Manifest:
    return fake.put(small.node("a", zone="z"))


def taints(name: str, value: str) -> Write:
    """A whole object, as a kind with several writers is written."""

    def make(current: Manifest | None) -> Manifest | None:
        if current is None:
            return None
        return current | {"spec": current["spec"] | {"instance-id": value}}

    return Write(small.NODE, name, make, how="replace")


@pytest.mark.parametrize("times", [1, 4])
@pytest.mark.parametrize("how", ["apply", "replace"])
def test_a_conflict_is_tried_again_with_what_is_there_now(
    times: int, how: str, node: Manifest, world: small.World
) -> None:
    """Somebody changes the object between our reading and our writing: worked out anew."""
    labels_read: list[dict[str, str]] = []
    inner = small.labelled("a") if how == "apply" else taints("a", "i-1")

    def make(current: Manifest | None) -> Manifest | None:
        assert current is not None
        labels_read.append(current["metadata"]["labels"])
        return inner.make(current)

    wish = Write(small.NODE, "a", make, how=how)
    world.nodes.writes = lambda _: [wish]
    verb = "patch" if how == "apply" else "update"
    for number in range(times):
        world.fake.faults.add(
            verb=verb,
            path=r"/a\b",
            call=lambda n=number: world.fake.put(small.node("a", zone=str(n))),
        )
    assert counted(world.reconcile()) == (1, 0)
    assert [labels["zone"] for labels in labels_read] == ["z", *map(str, range(times))]
    stored = world.fake.object("ciliumnodes", "a")
    assert stored["metadata"]["labels"]["zone"] == str(times - 1)
    assert (stored["metadata"]["labels"].get("cadastre") == "yes") == (how == "apply")


def test_after_five_times_it_is_shown(node: Manifest, world: small.World) -> None:
    world.nodes.writes = small.labelling("a")
    world.fake.faults.add(
        verb="patch", status=409, reason="Conflict", message="changed", times=None
    )
    assert counted(world.reconcile()) == (0, 1)
    assert len(world.fake.log.select("patch")) == 5
    assert Drift.objects.get().conflict == "changed"


def test_fields_of_another_manager_are_shown_and_not_forced(
    node: Manifest, world: small.World
) -> None:
    world.fake.put(small.node("a", cadastre="theirs"), manager="kubectl")
    world.nodes.writes = small.labelling("a")
    for _ in range(2):
        assert counted(world.reconcile()) == (0, 1)
    drift = Drift.objects.get()
    assert (drift.path, drift.desired, drift.observed) == (
        "metadata.labels.cadastre", "yes", "theirs",
    )  # fmt: skip
    assert "kubectl" in drift.managers
    assert "kubectl" in drift.conflict
    assert not [item for item in world.fake.log if "force" in item.query]
    world.fake.put(small.node("a"), manager="kubectl")
    assert counted(world.reconcile()) == (1, 0)
    assert not Drift.objects.exists()


def test_what_another_register_writes_as_cadastre_is_shown_and_not_written_back(
    node: Manifest, world: small.World
) -> None:
    """Both would write it again for ever: two installations, or this one after a restore."""
    world.nodes.writes = small.labelling("a")
    assert counted(world.reconcile()) == (1, 0)
    _label_as_cadastre(world.fake, "theirs")
    for _ in range(2):
        assert counted(world.reconcile()) == (0, 1)
    drift = Drift.objects.get()
    assert (drift.conflict_code, drift.observed) == ("written_elsewhere", "theirs")
    assert "Another installation of Cadastre" in drift.conflict
    # What somebody changes here is written, and so is what a person decides.
    world.nodes.writes = small.labelling("a", value="new")
    assert counted(world.reconcile()) == (1, 0)
    _label_as_cadastre(world.fake, "theirs")
    assert counted(world.reconcile()) == (0, 1)
    node_object = drifts.ClusterObject(world.connection.cluster, "CiliumNode", "a")
    drifts.apply(node_object, author=factories.BY)
    assert counted(world.reconcile()) == (1, 0)
    assert not Drift.objects.exists()


def test_an_object_that_is_older_than_what_was_written_is_written_again(
    node: Manifest, world: small.World
) -> None:
    """The storage of its cluster was restored from a backup."""
    world.nodes.writes = small.labelling("a")
    assert counted(world.reconcile()) == (1, 0)
    _label_as_cadastre(world.fake, "theirs")
    row = ObservedObject.objects.get(kind="CiliumNode")
    digest = row.written["cadastre"].partition(" ")[2]
    ObservedObject.objects.update(written={"cadastre": f"99 {digest}"})
    assert counted(world.reconcile()) == (1, 0)
    assert world.fake.object("ciliumnodes", "a")["metadata"]["labels"]["cadastre"] == "yes"


def test_a_field_that_was_removed_is_written_again(node: Manifest, world: small.World) -> None:
    world.nodes.writes = small.labelling("a")
    for _ in range(2):
        assert counted(world.reconcile()) == (1, 0)
        world.fake.put(small.node("a", zone="z"), manager="kubectl")


def _label_as_cadastre(fake: FakeCluster, value: str) -> None:
    """Of another installation, which has the same field manager."""
    manifest = small.labelled("a", value).make({})
    assert manifest is not None
    with gateways.to(fake) as gateway:
        gateway.apply(small.NODE, manifest, manager="cadastre")


def test_fields_that_are_unknown_and_finalizers_of_others_are_kept(world: small.World) -> None:
    manifest = small.node("a")
    manifest["metadata"]["finalizers"] = ["example.org/theirs"]
    manifest["metadata"]["annotations"] = {"example.org/note": "x"}
    manifest["spec"]["alibaba-cloud"] = {"vpc-id": "v"}
    world.fake.put(manifest)
    world.nodes.writes = lambda _: [small.labelled("a"), taints("a", "i-1")]
    assert counted(world.reconcile()) == (2, 0)
    stored = world.fake.object("ciliumnodes", "a")
    assert stored["metadata"]["finalizers"] == ["example.org/theirs"]
    assert stored["metadata"]["annotations"] == {"example.org/note": "x"}
    assert stored["spec"]["alibaba-cloud"] == {"vpc-id": "v"}
    assert (stored["spec"]["instance-id"], stored["metadata"]["labels"]["cadastre"]) == (
        "i-1", "yes",
    )  # fmt: skip


def test_what_the_cluster_does_not_keep_is_shown_and_sent_once(
    node: Manifest, world: small.World
) -> None:
    """Read back: a CRD without the field drops it, and would be written in every pass for ever."""

    def make(current: Manifest | None) -> Manifest | None:
        assert current is not None
        return current | {"spec": current["spec"] | {"no-such-field": 1}}

    world.nodes.writes = lambda _: [Write(small.NODE, "a", make, how="replace")]
    for _ in range(2):
        world.fake.log.clear()
        assert counted(world.reconcile()) == (0, 1)
        assert not world.fake.log.writes
    assert Drift.objects.get().path == "spec.no-such-field"
    assert "drops some of its fields" in Drift.objects.get().conflict


def test_shown_and_not_sent(node: Manifest, world: small.World) -> None:
    """Where a managed resource is off, the difference is for people."""
    wish = small.labelled("a")
    world.nodes.writes = lambda _: [Write(wish.resource, wish.name, wish.make, send=False)]
    assert counted(world.reconcile()) == (0, 0)
    assert Drift.objects.get().path == "metadata.labels.cadastre"
    assert not world.fake.log.select("patch")
    run = world.reconcile(trigger=Trigger.DRY_RUN)
    assert "would" not in run.kinds["CiliumNode"]


def test_what_is_ignored_stays_so_until_it_changes(node: Manifest, world: small.World) -> None:
    wish = small.labelled("a")
    world.nodes.writes = lambda _: [Write(wish.resource, wish.name, wish.make, send=False)]
    world.reconcile()
    Drift.objects.update(ignored_reason="as agreed")
    world.reconcile()
    assert Drift.objects.get().ignored_reason == "as agreed"
    world.put("a", cadastre="other")
    world.reconcile()
    assert (Drift.objects.get().ignored_reason, Drift.objects.get().observed) == ("", "other")


def test_one_refused_object_does_not_stop_the_others(world: small.World) -> None:
    world.put(*"abc")
    world.nodes.writes = small.labelling("a", "b", "c")
    world.fake.faults.add(verb="patch", path=r"/a\b", status=422, message="no", times=None)
    world.fake.faults.add(verb="patch", path=r"/b\b", status=500, message="webhook", times=None)
    assert counted(world.reconcile()) == (1, 2)
    assert {row.name: row.conflict for row in Drift.objects.all()} == {"a": "no", "b": "webhook"}


def test_a_right_that_is_missing_ends_the_kind_soon(world: small.World) -> None:
    expected = [f"n-{number:02}" for number in range(40)]
    for name in expected:
        world.put(name)
    world.nodes.writes = small.labelling(*expected)
    world.fake.faults.add(verb="patch", status=403, times=None)
    run = world.reconcile()
    assert run.kinds["CiliumNode"]["code"] == "cluster_forbidden"
    assert len(world.fake.log.select("patch")) == 10


def test_what_a_handler_gets_wrong_is_that_objects_trouble(world: small.World) -> None:
    world.put(*"ab")

    def list_writes(_: SyncContext) -> list[Write]:
        return [Write(small.NODE, "a", lambda current: current["nothing"]), small.labelled("b")]

    world.nodes.writes = list_writes
    assert counted(world.reconcile()) == (1, 1)


@pytest.mark.sample(3)
@pytest.mark.parametrize("effect", ["lost", "cut", "cut-body"])
def test_written_and_the_answer_lost(effect: Any, node: Manifest, world: small.World) -> None:
    world.nodes.writes = small.labelling("a")
    world.fake.faults.add(verb="patch", skip=1, effect=effect)
    run = world.reconcile()
    assert run.kinds["CiliumNode"]["written"] == 0
    world.connection.refresh_from_db()
    assert (world.connection.error_code, world.connection.leased_until) == (
        "cluster_unreachable",
        None,
    )
    world.reconcile()
    assert world.fake.object("ciliumnodes", "a")["metadata"]["labels"]["cadastre"] == "yes"
    world.fake.log.clear()
    third = world.reconcile()
    assert third.kinds["CiliumNode"] == {"seen": 1, "changed": 0, "written": 0, "failed": 0}
    assert not world.fake.log.select("patch")


def test_half_of_the_objects_written(world: small.World) -> None:
    world.put(*"abcd")
    world.nodes.writes = small.labelling(*"abcd")
    world.fake.faults.add(verb="patch", path=r"/c\b", effect="cut")
    assert counted(world.reconcile())[0] == 2
    assert counted(world.reconcile()) == (2, 0)
    run = world.reconcile()
    assert run.kinds["CiliumNode"] == {"seen": 4, "changed": 0, "written": 0, "failed": 0}
