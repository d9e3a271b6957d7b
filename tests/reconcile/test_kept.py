"""Of kinds that a cluster has very many of: which objects are kept, what of them, and where at all."""

from __future__ import annotations

import dataclasses

import pytest

from pools.clusters.reconcile.handler import Handler
from pools.core.kubernetes.resources import Manifest
from pools.models import Connection
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
