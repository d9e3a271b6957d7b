"""Rule `bad-object-fails-alone`: it is tried again, and is well one day."""

import json
import math
from typing import Any

import pytest
from django.db import connection as database

from pools.clusters.reconcile import storage
from pools.clusters.reconcile.handler import ParsedObject, SyncContext
from pools.core import errors
from pools.models import Connection, ObservedObject
from tests.kube.fake import FakeCluster
from tests.reconcile import small


def problems(connection: Connection) -> dict[str, str]:
    return {row.name: row.problem_code for row in small.rows(connection) if row.problem_code}


def big(name: str) -> dict[str, Any]:
    manifest = small.node(name)
    manifest["metadata"]["annotations"] = {"big": "x" * 1_400_000}
    return manifest


def labelled_node(name: str, text: str) -> dict[str, Any]:
    manifest = small.node(name)
    manifest["metadata"]["annotations"] = {"odd": text}
    return manifest


POISON: dict[str, tuple[dict[str, Any], str]] = {
    "large": (big("odd"), ""),
    "long-name": (small.node("o" * 253), ""),
    "nul": (labelled_node("odd", "a\0b"), "unstorable"),
    "backslash-u0000": (labelled_node("odd", "\\u0000"), ""),
    "emoji": (labelled_node("odd", "\U0001f600"), ""),
    "deep": (labelled_node("odd", "[" * 100_000), ""),
    "refused": (small.node("odd", poison="yes"), "poison"),
}


@pytest.mark.sample(7)
@pytest.mark.parametrize("name", POISON)
def test_a_poisonous_object_fails_alone(name: str, world: small.World) -> None:
    manifest, code = POISON[name]
    world.fake.put(manifest)
    world.put("a", "z")
    run = world.reconcile()
    assert problems(world.connection) == ({"odd": code} if code else {})
    assert run.kinds["CiliumNode"]["failed"] == (1 if code else 0)
    assert {"a", "z"} <= set(world.nodes.ingested)
    assert len(world.rows()) == 3
    second = world.reconcile()
    assert second.kinds["CiliumNode"]["changed"] == 0


def _raise(error: Exception) -> Any:
    def trouble(_: SyncContext, parsed: ParsedObject) -> None:
        if parsed.row.name == "bad":
            raise error

    return trouble


def _break_the_database(_: SyncContext, parsed: ParsedObject) -> None:
    if parsed.row.name == "bad":
        with database.cursor() as cursor:
            cursor.execute("INSERT INTO pools_cluster (id) VALUES (1)")


TROUBLES: dict[str, tuple[Any, str]] = {
    "refusal": (_raise(errors.CIDROverlap()), "cidr_overlap"),
    "bug": (_raise(KeyError("x")), "internal_error"),
    "database": (_break_the_database, "database_error"),
}


@pytest.mark.sample(3)
@pytest.mark.parametrize("name", TROUBLES)
def test_the_culprit_is_found_and_tried_again(name: str, world: small.World) -> None:
    for number in range(9):
        world.put(f"n-{number}")
    world.put("bad")
    world.nodes.trouble, code = TROUBLES[name]
    for _ in range(2):
        run = world.reconcile()
        assert run.kinds["CiliumNode"]["failed"] == 1
        assert problems(world.connection) == {"bad": code}
    assert len(set(world.nodes.ingested)) == 9
    world.nodes.trouble = lambda *_: None
    run = world.reconcile()
    assert run.succeeded
    assert run.kinds["CiliumNode"] == {"seen": 10, "changed": 0, "written": 0, "failed": 0}
    assert problems(world.connection) == {}
    assert world.nodes.ingested[-1] == "bad"


def test_pending_objects_are_looked_at_in_each_pass(world: small.World) -> None:
    world.put("waits", pending="yes")
    world.put("well")
    for _ in range(3):
        world.reconcile()
    assert world.nodes.ingested.count("waits") == 3
    assert world.nodes.ingested.count("well") == 1
    assert ObservedObject.objects.get(pending=True).name == "waits"


def test_who_cannot_be_forgotten_is_kept_and_tried_again(
    monkeypatch: pytest.MonkeyPatch, world: small.World
) -> None:
    monkeypatch.setattr(storage, "GRACE", 0)
    world.put("a", "bad")
    world.reconcile()
    world.remove("a", "bad")
    world.reconcile()
    forget = world.nodes.forget

    def refuses(context: SyncContext, rows: Any) -> None:
        if any(row.name == "bad" for row in rows):
            raise errors.CIDRInUse
        forget(context, rows)

    world.nodes.forget = refuses  # type: ignore[method-assign]
    run = world.reconcile()
    assert (world.nodes.forgotten, problems(world.connection)) == (["a"], {"bad": "cidr_in_use"})
    assert run.kinds["CiliumNode"]["failed"] == 1
    world.nodes.forget = forget  # type: ignore[method-assign]
    world.reconcile()
    assert world.rows() == []


def test_a_bad_kind_does_not_stop_the_others(world: small.World) -> None:
    world.put("a")
    pools = small.Small("CiliumPodIPPool", (small.POOL,))
    pools.writes = lambda _: [].pop()
    run = world.reconcile(pools, world.nodes)
    assert run.kinds["CiliumPodIPPool"]["code"] == "internal_error"
    assert world.names() == ["a"]
    assert Connection.objects.get().error_code == "internal_error"


def test_rows_are_made_by_position(fake: FakeCluster) -> None:
    names = [field.attname for field in ObservedObject._meta.concrete_fields]
    names.remove("cidrs")  # written by a trigger, read by statements of the database alone
    names.remove("written")  # written after a write of the object
    assert tuple(names) == storage.FIELDS


@pytest.mark.parametrize("text", ["\0", "\ud800", "a\ud800b", "\\\0"])
def test_what_no_database_holds_has_no_text(text: str) -> None:
    (item,) = next(storage.batches([labelled_node("odd", text)]))
    assert item.text == ""


@pytest.mark.parametrize("number", [float("nan"), float("inf"), None, 1 << 64, -(10**400), 1.5])
def test_numbers_are_stored_as_they_are_or_not_at_all(number: float | None) -> None:
    manifest = small.node("odd") | {"odd": number}
    (item,) = next(storage.batches([manifest]))
    if isinstance(number, float) and not math.isfinite(number):
        assert item.text == ""
    else:
        assert json.loads(item.text) == manifest


def test_no_statement_carries_more_than_it_can() -> None:
    batches = list(storage.batches(big(f"n-{number}") for number in range(12)))
    assert [len(batch) for batch in batches] == [5, 5, 2]
    assert len(list(storage.batches([small.node("a")] * 4500))) == 3
    assert json.loads(batches[0][0].text)["metadata"]["name"] == "n-0"
