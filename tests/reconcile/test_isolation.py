"""Rule `bad-object-fails-alone` in writes and findings: the object is named, the others are written."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from django.db import connection as database

from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import SyncContext, Write
from pools.core import errors
from pools.core.kubernetes.resources import Manifest
from pools.models import Connection, Finding, ManagedResource, ObservedObject
from tests.kube.fake import FakeCluster
from tests.reconcile import small


def _bug() -> None:
    raise KeyError("bad")


def _refusal() -> None:
    raise errors.CIDROverlap("it overlaps")


def _broken_statement() -> None:
    with database.cursor() as cursor:
        cursor.execute("INSERT INTO pools_cluster (id) VALUES (1)")


TROUBLES = {"bug": _bug, "refusal": _refusal, "database": _broken_statement}


@pytest.fixture
def fleet(fake: FakeCluster, connection: Connection) -> FakeCluster:
    Connection.objects.update(mode="managed", managed_resources=[ManagedResource.POD_CIDRS])
    for name in ("a", "bad", "z"):
        fake.put(small.node(name))
    return fake


def labels(fleet: FakeCluster) -> set[str]:
    nodes = fleet.objects("ciliumnodes")
    return {node["metadata"]["name"] for node in nodes if "cadastre" in node["metadata"]["labels"]}


def wanting(
    trouble: Callable[[], None], *, when_sent: bool
) -> Callable[[SyncContext], Iterator[Write]]:
    """All nodes are labelled, with trouble at one: when its write is computed, or later when it is sent."""

    def make(current: Manifest | None) -> Manifest | None:
        trouble()
        return current

    def yield_writes(context: SyncContext) -> Iterator[Write]:
        for name in ("a", "bad", "z"):
            with ingest.isolate_object(context, "CiliumNode", name):
                if name == "bad" and not when_sent:
                    trouble()
                write = small.labelled(name)
                yield Write(small.NODE, name, make) if name == "bad" else write

    return yield_writes


@pytest.mark.sample(6)
@pytest.mark.parametrize("when_sent", [False, True])
@pytest.mark.parametrize("name", TROUBLES)
def test_the_others_are_written_and_the_object_is_named(
    name: str, when_sent: bool, fleet: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    nodes.writes = wanting(TROUBLES[name], when_sent=when_sent)
    run = small.reconcile(connection, nodes)
    assert not run.error_code
    assert labels(fleet) == {"a", "z"}
    assert run.kinds["CiliumNode"]["failed"] == 1
    finding = Finding.objects.get(code="object_failed")
    assert (finding.subject, finding.severity) == ("bad", "error")
    assert finding.message.startswith("CiliumNode bad ")
    nodes.writes = small.labelling("a", "bad", "z")
    assert small.reconcile(connection, nodes).succeeded
    assert labels(fleet) == {"a", "bad", "z"}
    assert not Finding.objects.exists()


def test_an_object_that_breaks_ingest_is_named_by_a_finding(
    fleet: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    def trouble(_: SyncContext, parsed: object) -> None:
        if parsed.row.name == "bad":  # type: ignore[attr-defined]
            raise KeyError("bad")

    nodes.trouble = trouble
    small.reconcile(connection, nodes)
    assert Finding.objects.get(code="object_failed").subject == "bad"


def test_what_a_handler_quotes_of_an_object_is_stored_without_secrets(
    fleet: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    def trouble(_: SyncContext, parsed: object) -> None:
        parsed.row.problem_code = "odd"  # type: ignore[attr-defined]
        parsed.row.problem = "no MAC: token=abcdef0123456789"  # type: ignore[attr-defined]

    nodes.trouble = trouble
    for _ in range(2):
        small.reconcile(connection, nodes)
        problems = set(ObservedObject.objects.values_list("problem_code", "problem"))
        assert problems == {("odd", "no MAC: token=[redacted]")}
