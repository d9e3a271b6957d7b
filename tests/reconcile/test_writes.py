"""What is sent to a cluster: never blindly, never by force, and once."""

from typing import Any

import pytest

from pools.clusters import drift as drifts
from pools.clusters.reconcile.handler import SyncContext, Write
from pools.core.kubernetes.resources import Manifest
from pools.models import Connection, Drift, Trigger
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
    times: int,
    how: str,
    node: Manifest,
    fake: FakeCluster,
    connection: Connection,
    nodes: small.Small,
) -> None:
    """Somebody changes the object between our reading and our writing: worked out anew."""
    labels_read: list[dict[str, str]] = []
    inner = small.labelled("a") if how == "apply" else taints("a", "i-1")

    def make(current: Manifest | None) -> Manifest | None:
        assert current is not None
        labels_read.append(current["metadata"]["labels"])
        return inner.make(current)

    wish = Write(small.NODE, "a", make, how=how)
    nodes.writes = lambda _: [wish]
    verb = "patch" if how == "apply" else "update"
    for number in range(times):
        fake.faults.add(
            verb=verb, path=r"/a\b", call=lambda n=number: fake.put(small.node("a", zone=str(n)))
        )
    assert counted(small.reconcile(connection, nodes)) == (1, 0)
    assert [labels["zone"] for labels in labels_read] == ["z", *map(str, range(times))]
    stored = fake.object("ciliumnodes", "a")
    assert stored["metadata"]["labels"]["zone"] == str(times - 1)
    assert (stored["metadata"]["labels"].get("cadastre") == "yes") == (how == "apply")


def test_after_five_times_it_is_shown(
    node: Manifest, fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    nodes.writes = small.labelling("a")
    fake.faults.add(verb="patch", status=409, reason="Conflict", message="changed", times=None)
    assert counted(small.reconcile(connection, nodes)) == (0, 1)
    assert len(fake.log.select("patch")) == 5
    assert Drift.objects.get().conflict == "changed"


def test_fields_of_another_manager_are_shown_and_not_forced(
    node: Manifest, fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    fake.put(small.node("a", cadastre="theirs"), manager="kubectl")
    nodes.writes = small.labelling("a")
    for _ in range(2):
        assert counted(small.reconcile(connection, nodes)) == (0, 1)
    drift = Drift.objects.get()
    assert (drift.path, drift.desired, drift.observed) == (
        "metadata.labels.cadastre", "yes", "theirs",
    )  # fmt: skip
    assert "kubectl" in drift.managers
    assert "kubectl" in drift.conflict
    assert not [item for item in fake.log if "force" in item.query]
    fake.put(small.node("a"), manager="kubectl")
    assert counted(small.reconcile(connection, nodes)) == (1, 0)
    assert not Drift.objects.exists()


def test_what_another_register_writes_as_cadastre_is_shown_and_not_written_back(
    node: Manifest, fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    """Both would write it again for ever: two installations, or this one after a restore."""
    nodes.writes = small.labelling("a")
    assert counted(small.reconcile(connection, nodes)) == (1, 0)
    _label_as_cadastre(fake, "theirs")
    for _ in range(2):
        assert counted(small.reconcile(connection, nodes)) == (0, 1)
    drift = Drift.objects.get()
    assert (drift.conflict_code, drift.observed) == ("written_elsewhere", "theirs")
    assert "Another installation of Cadastre" in drift.conflict
    # What somebody changes here is written, and so is what a person decides.
    nodes.writes = small.labelling("a", value="new")
    assert counted(small.reconcile(connection, nodes)) == (1, 0)
    _label_as_cadastre(fake, "theirs")
    assert counted(small.reconcile(connection, nodes)) == (0, 1)
    node_object = drifts.ClusterObject(connection.cluster, "CiliumNode", "a")
    drifts.apply(node_object, author=factories.BY)
    assert counted(small.reconcile(connection, nodes)) == (1, 0)
    assert not Drift.objects.exists()


def test_a_field_that_was_removed_is_written_again(
    node: Manifest, fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    nodes.writes = small.labelling("a")
    for _ in range(2):
        assert counted(small.reconcile(connection, nodes)) == (1, 0)
        fake.put(small.node("a", zone="z"), manager="kubectl")


def _label_as_cadastre(fake: FakeCluster, value: str) -> None:
    """Of another installation, which has the same field manager."""
    manifest = small.labelled("a", value).make({})
    assert manifest is not None
    with gateways.to(fake) as gateway:
        gateway.apply(small.NODE, manifest, manager="cadastre")


def test_fields_that_are_unknown_and_finalizers_of_others_are_kept(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    manifest = small.node("a")
    manifest["metadata"]["finalizers"] = ["example.org/theirs"]
    manifest["metadata"]["annotations"] = {"example.org/note": "x"}
    manifest["spec"]["alibaba-cloud"] = {"vpc-id": "v"}
    fake.put(manifest)
    nodes.writes = lambda _: [small.labelled("a"), taints("a", "i-1")]
    assert counted(small.reconcile(connection, nodes)) == (2, 0)
    stored = fake.object("ciliumnodes", "a")
    assert stored["metadata"]["finalizers"] == ["example.org/theirs"]
    assert stored["metadata"]["annotations"] == {"example.org/note": "x"}
    assert stored["spec"]["alibaba-cloud"] == {"vpc-id": "v"}
    assert (stored["spec"]["instance-id"], stored["metadata"]["labels"]["cadastre"]) == (
        "i-1", "yes",
    )  # fmt: skip


def test_what_the_cluster_does_not_keep_is_shown_and_sent_once(
    node: Manifest, fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    """Read back: a CRD without the field drops it, and would be written in every pass for ever."""

    def make(current: Manifest | None) -> Manifest | None:
        assert current is not None
        return current | {"spec": current["spec"] | {"no-such-field": 1}}

    nodes.writes = lambda _: [Write(small.NODE, "a", make, how="replace")]
    for _ in range(2):
        fake.log.clear()
        assert counted(small.reconcile(connection, nodes)) == (0, 1)
        assert not fake.log.writes
    assert Drift.objects.get().path == "spec.no-such-field"
    assert "drops some of its fields" in Drift.objects.get().conflict


def test_shown_and_not_sent(
    node: Manifest, fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    """Where a managed resource is off, the difference is for people."""
    wish = small.labelled("a")
    nodes.writes = lambda _: [Write(wish.resource, wish.name, wish.make, send=False)]
    assert counted(small.reconcile(connection, nodes)) == (0, 0)
    assert Drift.objects.get().path == "metadata.labels.cadastre"
    assert not fake.log.select("patch")
    run = small.reconcile(connection, nodes, trigger=Trigger.DRY_RUN)
    assert "would" not in run.kinds["CiliumNode"]


def test_what_is_ignored_stays_so_until_it_changes(
    node: Manifest, fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    wish = small.labelled("a")
    nodes.writes = lambda _: [Write(wish.resource, wish.name, wish.make, send=False)]
    small.reconcile(connection, nodes)
    Drift.objects.update(ignored_reason="as agreed")
    small.reconcile(connection, nodes)
    assert Drift.objects.get().ignored_reason == "as agreed"
    fake.put(small.node("a", cadastre="other"))
    small.reconcile(connection, nodes)
    assert (Drift.objects.get().ignored_reason, Drift.objects.get().observed) == ("", "other")


def test_one_refused_object_does_not_stop_the_others(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    for name in "abc":
        fake.put(small.node(name))
    nodes.writes = small.labelling("a", "b", "c")
    fake.faults.add(verb="patch", path=r"/a\b", status=422, message="no", times=None)
    fake.faults.add(verb="patch", path=r"/b\b", status=500, message="webhook", times=None)
    assert counted(small.reconcile(connection, nodes)) == (1, 2)
    assert {row.name: row.conflict for row in Drift.objects.all()} == {"a": "no", "b": "webhook"}


def test_a_right_that_is_missing_ends_the_kind_soon(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    expected = [f"n-{number:02}" for number in range(40)]
    for name in expected:
        fake.put(small.node(name))
    nodes.writes = small.labelling(*expected)
    fake.faults.add(verb="patch", status=403, times=None)
    run = small.reconcile(connection, nodes)
    assert run.kinds["CiliumNode"]["code"] == "cluster_forbidden"
    assert len(fake.log.select("patch")) == 10


def test_what_a_handler_gets_wrong_is_that_objects_trouble(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    for name in "ab":
        fake.put(small.node(name))

    def list_writes(_: SyncContext) -> list[Write]:
        return [Write(small.NODE, "a", lambda current: current["nothing"]), small.labelled("b")]

    nodes.writes = list_writes
    assert counted(small.reconcile(connection, nodes)) == (1, 1)


@pytest.mark.sample(3)
@pytest.mark.parametrize("effect", ["lost", "cut", "cut-body"])
def test_written_and_the_answer_lost(
    effect: Any, node: Manifest, fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    nodes.writes = small.labelling("a")
    fake.faults.add(verb="patch", skip=1, effect=effect)
    run = small.reconcile(connection, nodes)
    assert run.kinds["CiliumNode"]["written"] == 0
    connection.refresh_from_db()
    assert (connection.error_code, connection.leased_until) == ("cluster_unreachable", None)
    small.reconcile(connection, nodes)
    assert fake.object("ciliumnodes", "a")["metadata"]["labels"]["cadastre"] == "yes"
    fake.log.clear()
    third = small.reconcile(connection, nodes)
    assert third.kinds["CiliumNode"] == {"seen": 1, "changed": 0, "written": 0, "failed": 0}
    assert not fake.log.select("patch")


def test_half_of_the_objects_written(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    for name in "abcd":
        fake.put(small.node(name))
    nodes.writes = small.labelling(*"abcd")
    fake.faults.add(verb="patch", path=r"/c\b", effect="cut")
    assert counted(small.reconcile(connection, nodes))[0] == 2
    assert counted(small.reconcile(connection, nodes)) == (2, 0)
    run = small.reconcile(connection, nodes)
    assert run.kinds["CiliumNode"] == {"seen": 4, "changed": 0, "written": 0, "failed": 0}
