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
from tests.reconcile import small


def watch_position(connection: Connection, kind: str = "CiliumNode") -> Position:
    connection.refresh_from_db()
    result = watchers.read(connection.positions, kind)
    assert result is not None
    return result


def tell(
    world: small.World,
    *events: tuple[str, Manifest],
    since: Position | None = None,
    others: tuple[small.Small, ...] = (),
) -> SyncRun:
    """What happened since `since`, by default since the kind was taken in last."""
    lease = leases.borrow(world.connection.pk, "watcher")
    assert lease is not None
    version = events[-1][1]["metadata"]["resourceVersion"] if events else "0"
    return watch_events.ingest_events(
        lease,
        [world.nodes, *others],
        world.nodes.kind,
        events,
        position=since or watch_position(world.connection),
        to=Position("cilium.io/v2", version),
    )


@pytest.fixture
def listed(world: small.World) -> small.World:
    world.put("a")
    world.reconcile()
    world.nodes.ingested.clear()
    return world


def test_events_are_taken_in(listed: small.World) -> None:
    listed.connection.refresh_from_db()
    due = listed.connection.due_at
    new = listed.fake.put(small.node("b"))
    run = tell(listed, ("ADDED", new))
    assert run.kinds["CiliumNode"]["changed"] == 1
    assert listed.names() == ["a", "b"]
    assert watch_position(listed.connection).version == new["metadata"]["resourceVersion"]
    assert (listed.connection.due_at, listed.connection.leased_until) == (due, None)


def test_doubled_events_change_nothing(listed: small.World) -> None:
    new = listed.fake.put(small.node("b"))
    for _ in range(3):
        tell(listed, ("ADDED", new), ("ADDED", new), since=watch_position(listed.connection))
    assert listed.nodes.ingested == ["b"]
    assert SyncRun.objects.filter(trigger=Trigger.WATCH).count() == 1


def test_late_events_are_dropped(listed: small.World) -> None:
    """Of a watcher that slept, while a pass has seen what came after."""
    since = watch_position(listed.connection)
    old = listed.fake.put(small.node("a", zone="old"))
    gone = listed.fake.put(small.node("gone"))
    listed.fake.put(small.node("a", zone="new"))
    listed.fake.remove("ciliumnodes", "gone")
    listed.reconcile()
    run = tell(listed, ("MODIFIED", old), ("ADDED", gone), since=since)
    assert run.error_code == watch_events.OVERTAKEN
    assert run.pk is None
    assert listed.names() == ["a"]
    assert listed.rows()[0].manifest["metadata"]["labels"] == {"zone": "new"}
    listed.connection.refresh_from_db()
    assert (listed.connection.failures, listed.connection.leased_until) == (0, None)


def test_the_last_event_of_an_object_counts(listed: small.World) -> None:
    first = listed.fake.put(small.node("b", zone="1"))
    second = listed.fake.put(small.node("b", zone="2"))
    tell(listed, ("ADDED", first), ("MODIFIED", second))
    assert listed.nodes.ingested == ["b"]
    assert listed.rows()[1].manifest["metadata"]["labels"] == {"zone": "2"}


def test_deleted_and_made_again(listed: small.World) -> None:
    (old,) = listed.rows()
    listed.fake.remove("ciliumnodes", "a")
    new = listed.fake.put(small.node("a"))
    tell(listed, ("DELETED", old.manifest), ("ADDED", new))
    assert (listed.nodes.ingested, listed.nodes.forgotten) == (["a"], ["a"])
    assert [row.uid for row in listed.rows()] == [new["metadata"]["uid"]]


def test_a_deletion_of_another_uid_is_nobodys_end(listed: small.World) -> None:
    (row,) = listed.rows()
    other = row.manifest | {"metadata": row.manifest["metadata"] | {"uid": "another"}}
    run = tell(listed, ("DELETED", other))
    assert (listed.nodes.forgotten, run.pk) == ([], None)
    assert listed.names() == ["a"]


@pytest.mark.parametrize(
    "resources", [[], [{"name": "ciliumnodes", "verbs": ["get", "list", "watch"]}]]
)
def test_what_a_server_deletes_with_its_definition_is_not_gone(
    resources: list[dict[str, Any]], listed: small.World
) -> None:
    """A definition that is being deleted takes no new objects; its node goes on with its blocks."""
    (row,) = listed.rows()
    since = watch_position(listed.connection)
    body = json.dumps({"kind": "APIResourceList", "resources": resources}).encode()
    listed.fake.faults.add(path=r"/apis/cilium.io/v2$", body=body)
    listed.fake.remove("ciliumnodes", "a")
    run = tell(listed, ("DELETED", row.manifest))
    assert run.kinds["CiliumNode"]["code"] == "crd_missing"
    assert (listed.nodes.forgotten, listed.names()) == ([], ["a"])
    assert watch_position(listed.connection) == since
    tell(listed, ("DELETED", row.manifest))
    assert listed.nodes.forgotten == ["a"]


def test_what_we_wrote_ourselves_is_no_news(listed: small.World) -> None:
    listed.nodes.writes = small.labelling("a", "b")
    new = listed.fake.put(small.node("b"))
    run = tell(listed, ("ADDED", new))
    # The handler wanted both; an object that was not touched is looked up, not asked for.
    assert run.kinds["CiliumNode"]["written"] == 2
    assert not listed.fake.log.select("get", "ciliumnodes")
    listed.fake.log.clear()
    mine = listed.fake.object("ciliumnodes", "b")
    again = tell(listed, ("MODIFIED", mine))
    assert again.pk is None
    assert len(listed.fake.log) == 0


def test_a_kind_that_follows_is_asked_too(world: small.World) -> None:
    pools = small.Small("CiliumPodIPPool", (small.POOL,), follows=("CiliumNode",))
    world.put("a")
    world.reconcile(world.nodes, pools)
    contexts: list[SyncContext] = []

    def record_context(context: SyncContext) -> tuple[()]:
        contexts.append(context)
        return ()

    pools.writes = record_context
    tell(world, ("MODIFIED", world.fake.put(small.node("a", zone="z"))), others=(pools,))
    (context,) = contexts
    assert context.from_watch
    assert context.changed_keys == {("", "a")}
    assert context.served["CiliumPodIPPool"] == small.POOL


def test_another_cluster_is_not_written_to(listed: small.World) -> None:
    listed.nodes.writes = small.labelling("b")
    new = listed.fake.put(small.node("b"))
    listed.fake.kube_system_uid = "another"
    run = tell(listed, ("ADDED", new))
    assert run.error_code == "identity_changed"
    assert not listed.fake.log.writes


def test_a_fault_keeps_the_position(listed: small.World) -> None:
    before: Any = watch_position(listed.connection)
    listed.nodes.writes = small.labelling("b")
    listed.fake.faults.add(verb="patch", effect="cut")
    run = tell(listed, ("ADDED", listed.fake.put(small.node("b"))))
    assert run.error_code == "cluster_unreachable"
    assert watch_position(listed.connection) == before
    assert (listed.connection.failures, listed.connection.leased_until) == (1, None)


def _bug() -> None:
    raise KeyError("bad")


def _refusal() -> None:
    raise errors.CIDROverlap("it overlaps")


def _broken_statement() -> None:
    with database.cursor() as cursor:
        cursor.execute("INSERT INTO pools_cluster (id) VALUES (1)")


TROUBLES = {"bug": _bug, "refusal": _refusal, "database": _broken_statement}


@pytest.fixture
def fleet(world: small.World) -> small.World:
    Connection.objects.update(mode="managed", managed_resources=[ManagedResource.POD_CIDRS])
    world.put("a", "bad", "z")
    return world


def labels(fleet: small.World) -> set[str]:
    nodes = fleet.fake.objects("ciliumnodes")
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
    name: str, when_sent: bool, fleet: small.World
) -> None:
    fleet.nodes.writes = wanting(TROUBLES[name], when_sent=when_sent)
    run = fleet.reconcile()
    assert not run.error_code
    assert labels(fleet) == {"a", "z"}
    assert run.kinds["CiliumNode"]["failed"] == 1
    finding = Finding.objects.get(code="object_failed")
    assert (finding.subject, finding.severity) == ("bad", "error")
    assert finding.message.startswith("CiliumNode bad ")
    fleet.nodes.writes = small.labelling("a", "bad", "z")
    assert fleet.reconcile().succeeded
    assert labels(fleet) == {"a", "bad", "z"}
    assert not Finding.objects.exists()


def test_an_object_that_breaks_ingest_is_named_by_a_finding(fleet: small.World) -> None:
    def trouble(_: SyncContext, parsed: object) -> None:
        if parsed.row.name == "bad":  # type: ignore[attr-defined]
            raise KeyError("bad")

    fleet.nodes.trouble = trouble
    fleet.reconcile()
    assert Finding.objects.get(code="object_failed").subject == "bad"


def test_what_a_handler_quotes_of_an_object_is_stored_without_secrets(fleet: small.World) -> None:
    def trouble(_: SyncContext, parsed: object) -> None:
        parsed.row.problem_code = "odd"  # type: ignore[attr-defined]
        parsed.row.problem = "no MAC: token=abcdef0123456789"  # type: ignore[attr-defined]

    fleet.nodes.trouble = trouble
    for _ in range(2):
        fleet.reconcile()
        problems = set(ObservedObject.objects.values_list("problem_code", "problem"))
        assert problems == {("odd", "no MAC: token=[redacted]")}
