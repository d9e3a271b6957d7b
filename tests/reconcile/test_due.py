"""Passes by the schedule and by hand: `reconcile_due`, `manage.py reconcile`."""

import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from pools import tasks
from pools.clusters.reconcile import leases, registry
from pools.models import Connection, SyncRun, Trigger
from tests import commands
from tests.reconcile import small


@pytest.fixture(autouse=True)
def _handlers(nodes: small.Small, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "HANDLERS", [nodes])


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The messages that a broker would have got."""
    result: list[Any] = []

    def send(arguments: Any, *, expires: float) -> None:
        result.append((arguments, expires))

    monkeypatch.setattr(tasks.reconcile, "apply_async", send)
    return result


def reconcile(connection: Connection, *options: str) -> str:
    return commands.output("reconcile", connection.cluster.name, *options)


def test_one_message_for_each_cluster_that_is_due(sent: list[Any], world: small.World) -> None:
    world.reconcile(small.Small())
    due, paused, leased = (small.connect(world.fake) for _ in range(3))
    Connection.objects.filter(pk=paused.pk).update(paused=True)
    leases.take(leased.pk, "another")
    assert tasks.reconcile_due() == 1
    assert [arguments for arguments, _ in sent] == [(due.pk,)]
    assert tasks.reconcile_due() == 1, "a lost message is repaired by the next tick"


def test_a_doubled_message_does_nothing(world: small.World) -> None:
    assert [tasks.reconcile(world.connection.pk) for _ in range(3)] == [True, False, False]
    assert SyncRun.objects.count() == 1


def test_a_message_of_a_cluster_that_is_gone(db: None) -> None:
    assert tasks.reconcile(12345) is False


def test_by_hand(world: small.World) -> None:
    world.put("a")
    world.nodes.writes = small.labelling("a")
    assert "CiliumNode  seen 1  changed 1  written 1  failed 0" in reconcile(world.connection)
    report = json.loads(reconcile(world.connection, "--json"))
    assert report["succeeded"]
    assert report["kinds"] == {"CiliumNode": {"seen": 1, "changed": 0, "written": 0, "failed": 0}}
    assert set(SyncRun.objects.values_list("trigger", flat=True)) == {Trigger.CHANGE}


def test_by_hand_dry(world: small.World) -> None:
    world.put("a")
    world.nodes.writes = small.labelling("a")
    report = reconcile(world.connection, "--dry-run")
    assert "would 1" in report
    assert 'metadata.labels.cadastre: null -> "yes"' in report
    assert not world.fake.log.writes
    assert not world.rows()


@pytest.mark.parametrize("kind", ["object", "kind", "cluster"])
def test_the_exit_status_tells(kind: str, world: small.World) -> None:
    if kind == "object":
        world.put("bad", poison="yes")
    elif kind == "kind":
        world.fake.faults.add(verb="list", path="ciliumnodes", status=403)
    else:
        world.fake.faults.add(status=401)
    with pytest.raises(CommandError):
        reconcile(world.connection)


def test_refusals(connection: Connection) -> None:
    with pytest.raises(CommandError, match="not_found: There is no connected cluster nobody"):
        call_command("reconcile", "nobody")
    leases.take(connection.pk, "another")
    with pytest.raises(CommandError, match="cluster_in_use: another is syncing"):
        reconcile(connection, "--wait=0.3")
    Connection.objects.update(paused=True)
    with pytest.raises(CommandError, match="connection_paused"):
        reconcile(connection)
    assert not SyncRun.objects.exists()
