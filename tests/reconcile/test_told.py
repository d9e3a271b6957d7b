"""Watch events; and in writes and findings an object fails alone and is named (rule `bad-object-fails-alone`)."""

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import connection as database

from pools.clusters.reconcile import ingest, leases, watch_events, watchers
from pools.clusters.reconcile.handler import SyncContext, Write
from pools.clusters.reconcile.watchers import Position
from pools.core import errors
from pools.core.kubernetes.resources import Manifest
from pools.models import Connection, Finding, ManagedResource, ObservedObject, SyncRun, Trigger
from tests.kube.fake import FakeCluster
from tests.reconcile import small


def watch_position(connection: Connection, kind: str = "CiliumNode") -> Position:
    connection.refresh_from_db()
    result = watchers.read(connection.positions, kind)
    assert result is not None
    return result


def tell(
    connection: Connection,
    nodes: small.Small,
    *events: tuple[str, Manifest],
    since: Position | None = None,
    others: tuple[small.Small, ...] = (),
) -> SyncRun:
    """What happened since `since`, by default since the kind was taken in last."""
    lease = leases.borrow(connection.pk, "watcher")
    assert lease is not None
    version = events[-1][1]["metadata"]["resourceVersion"] if events else "0"
    return watch_events.ingest_events(
        lease,
        [nodes, *others],
        nodes.kind,
        events,
        position=since or watch_position(connection),
        to=Position("cilium.io/v2", version),
    )


@pytest.fixture
def listed(fake: FakeCluster, connection: Connection, nodes: small.Small) -> Connection:
    fake.put(small.node("a"))
    small.reconcile(connection, nodes)
    nodes.ingested.clear()
    return connection


def test_events_are_taken_in(fake: FakeCluster, listed: Connection, nodes: small.Small) -> None:
    listed.refresh_from_db()
    due = listed.due_at
    new = fake.put(small.node("b"))
    run = tell(listed, nodes, ("ADDED", new))
    assert run.kinds["CiliumNode"]["changed"] == 1
    assert small.names(listed) == ["a", "b"]
    assert watch_position(listed).version == new["metadata"]["resourceVersion"]
    assert (listed.due_at, listed.leased_until) == (due, None)


def test_doubled_events_change_nothing(
    fake: FakeCluster, listed: Connection, nodes: small.Small
) -> None:
    new = fake.put(small.node("b"))
    for _ in range(3):
        tell(listed, nodes, ("ADDED", new), ("ADDED", new), since=watch_position(listed))
    assert nodes.ingested == ["b"]
    assert SyncRun.objects.filter(trigger=Trigger.WATCH).count() == 1


def test_late_events_are_dropped(fake: FakeCluster, listed: Connection, nodes: small.Small) -> None:
    """Of a watcher that slept, while a pass has seen what came after."""
    since = watch_position(listed)
    old = fake.put(small.node("a", zone="old"))
    gone = fake.put(small.node("gone"))
    fake.put(small.node("a", zone="new"))
    fake.remove("ciliumnodes", "gone")
    small.reconcile(listed, nodes)
    run = tell(listed, nodes, ("MODIFIED", old), ("ADDED", gone), since=since)
    assert run.error_code == watch_events.OVERTAKEN
    assert run.pk is None
    assert small.names(listed) == ["a"]
    assert small.rows(listed)[0].manifest["metadata"]["labels"] == {"zone": "new"}
    listed.refresh_from_db()
    assert (listed.failures, listed.leased_until) == (0, None)


def test_the_last_event_of_an_object_counts(
    fake: FakeCluster, listed: Connection, nodes: small.Small
) -> None:
    first = fake.put(small.node("b", zone="1"))
    second = fake.put(small.node("b", zone="2"))
    tell(listed, nodes, ("ADDED", first), ("MODIFIED", second))
    assert nodes.ingested == ["b"]
    assert small.rows(listed)[1].manifest["metadata"]["labels"] == {"zone": "2"}


def test_deleted_and_made_again(fake: FakeCluster, listed: Connection, nodes: small.Small) -> None:
    (old,) = small.rows(listed)
    fake.remove("ciliumnodes", "a")
    new = fake.put(small.node("a"))
    tell(listed, nodes, ("DELETED", old.manifest), ("ADDED", new))
    assert (nodes.ingested, nodes.forgotten) == (["a"], ["a"])
    assert [row.uid for row in small.rows(listed)] == [new["metadata"]["uid"]]


def test_a_deletion_of_another_uid_is_nobodys_end(listed: Connection, nodes: small.Small) -> None:
    (row,) = small.rows(listed)
    other = row.manifest | {"metadata": row.manifest["metadata"] | {"uid": "another"}}
    run = tell(listed, nodes, ("DELETED", other))
    assert (nodes.forgotten, run.pk) == ([], None)
    assert small.names(listed) == ["a"]


@pytest.mark.parametrize(
    "resources", [[], [{"name": "ciliumnodes", "verbs": ["get", "list", "watch"]}]]
)
def test_what_a_server_deletes_with_its_definition_is_not_gone(
    resources: list[dict[str, Any]], fake: FakeCluster, listed: Connection, nodes: small.Small
) -> None:
    """A definition that is being deleted takes no new objects; its node goes on with its blocks."""
    (row,) = small.rows(listed)
    since = watch_position(listed)
    body = json.dumps({"kind": "APIResourceList", "resources": resources}).encode()
    fake.faults.add(path=r"/apis/cilium.io/v2$", body=body)
    fake.remove("ciliumnodes", "a")
    run = tell(listed, nodes, ("DELETED", row.manifest))
    assert run.kinds["CiliumNode"]["code"] == "crd_missing"
    assert (nodes.forgotten, small.names(listed)) == ([], ["a"])
    assert watch_position(listed) == since
    tell(listed, nodes, ("DELETED", row.manifest))
    assert nodes.forgotten == ["a"]


def test_what_we_wrote_ourselves_is_no_news(
    fake: FakeCluster, listed: Connection, nodes: small.Small
) -> None:
    nodes.writes = small.labelling("a", "b")
    new = fake.put(small.node("b"))
    run = tell(listed, nodes, ("ADDED", new))
    # The handler wanted both; an object that was not touched is looked up, not asked for.
    assert run.kinds["CiliumNode"]["written"] == 2
    assert not fake.log.select("get", "ciliumnodes")
    fake.log.clear()
    mine = fake.object("ciliumnodes", "b")
    again = tell(listed, nodes, ("MODIFIED", mine))
    assert again.pk is None
    assert len(fake.log) == 0


def test_a_kind_that_follows_is_asked_too(
    fake: FakeCluster, connection: Connection, nodes: small.Small
) -> None:
    pools = small.Small("CiliumPodIPPool", (small.POOL,), follows=("CiliumNode",))
    fake.put(small.node("a"))
    small.reconcile(connection, nodes, pools)
    contexts: list[SyncContext] = []

    def record_context(context: SyncContext) -> tuple[()]:
        contexts.append(context)
        return ()

    pools.writes = record_context
    tell(connection, nodes, ("MODIFIED", fake.put(small.node("a", zone="z"))), others=(pools,))
    (context,) = contexts
    assert context.from_watch
    assert context.changed_keys == {("", "a")}
    assert context.served["CiliumPodIPPool"] == small.POOL


def test_another_cluster_is_not_written_to(
    fake: FakeCluster, listed: Connection, nodes: small.Small
) -> None:
    nodes.writes = small.labelling("b")
    new = fake.put(small.node("b"))
    fake.kube_system_uid = "another"
    run = tell(listed, nodes, ("ADDED", new))
    assert run.error_code == "identity_changed"
    assert not fake.log.writes


def test_a_fault_keeps_the_position(
    fake: FakeCluster, listed: Connection, nodes: small.Small
) -> None:
    before: Any = watch_position(listed)
    nodes.writes = small.labelling("b")
    fake.faults.add(verb="patch", effect="cut")
    run = tell(listed, nodes, ("ADDED", fake.put(small.node("b"))))
    assert run.error_code == "cluster_unreachable"
    assert watch_position(listed) == before
    assert (listed.failures, listed.leased_until) == (1, None)


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
