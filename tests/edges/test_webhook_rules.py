"""What the webhook refuses: what is in use, what never changes, overlaps, and what is wrong."""

import copy
from typing import Any

import pytest

from pools.models import Pool
from pools.platform import events
from tests import factories
from tests.edges.webhooks import Door, changed, manifest, refused, reserving, warned

TWO = ("10.0.0.0/16", "10.1.0.0/16")


@pytest.fixture
def door() -> Door:
    return Door(factories.cluster())


def _pool(door: Door, *cidrs: str, name: str = "green", **settings: Any) -> Pool:
    settings = {"mask": 24, "category": "pod"} | settings
    return factories.pool(*cidrs or TWO, within=door.cluster, name=name, **settings)


def _node(pool: Pool, name: str) -> Any:
    return factories.take(pool, factories.holder(name, kind="node"))


def test_the_removal_of_a_cidr_in_use(door: Door) -> None:
    pool = _pool(door)
    _node(pool, "n1")
    both = manifest("green", *TWO)
    message = refused(door.ask(changed(both, cidrs=[TWO[1]]), both), "cidr_in_use")
    assert message == (
        "10.0.0.0/16 cannot be removed: it has 1 held or cooling block: node n1 (10.0.0.0/24, held)"
    )
    assert warned(door.ask(changed(both, cidrs=[TWO[0]]), both)) == ""


def test_cooling_blocks_are_in_use(door: Door) -> None:
    pool = _pool(door, cooldown=3600)
    factories.give_back(_node(pool, "n1"))
    assert "cooling" in refused(door.ask(None, manifest("green", *TWO)), "pool_in_use")


def test_a_pool_in_use_names_twenty_holders_and_counts_the_rest(door: Door) -> None:
    pool = _pool(door)
    for number in range(23):
        _node(pool, f"n{number}")
    message = refused(door.ask(None, manifest("green", *TWO)), "pool_in_use")
    assert "23 held or cooling blocks: node n0 (10.0.0.0/24, held), node n1" in message
    assert message.endswith("node n19 (10.0.19.0/24, held) and 3 more")


def test_a_pool_that_nothing_holds_goes(door: Door) -> None:
    factories.give_back(_node(_pool(door), "n1"))
    assert warned(door.ask(None, manifest("green", *TWO))) == ""


def test_a_deletion_without_the_old_object(door: Door) -> None:
    _node(_pool(door), "n1")
    refused(door.ask(None, None, name="green"), "pool_in_use")


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        ({"mask": 24}, {"mask": 26}, "spec.ipv4.maskSize"),
        ({}, {"allowFirstIP": True}, "spec.allowFirstIP"),
        ({"allowLastIP": True}, {"allowLastIP": False}, "spec.allowLastIP"),
    ],
)
def test_what_never_changes(door: Door, before: Any, after: Any, field: str) -> None:
    response = door.ask(manifest("green", *TWO, **after), manifest("green", *TWO, **before))
    assert field in refused(response, "immutable_in_use")
    assert response["status"]["code"] == 422


def test_a_new_pool_of_an_old_name_differs_only_when_nothing_is_held(door: Door) -> None:
    pool = _pool(door)
    other = manifest("green", *TWO, mask=26)
    assert "mask size 24 to 26" in warned(door.ask(other))
    _node(pool, "n1")
    refused(door.ask(other), "immutable_in_use")


@pytest.mark.parametrize("category", ["pod", "vm"])
def test_overlap_with_another_pool_of_the_space(door: Door, category: str) -> None:
    _pool(door, "10.0.7.0/24", name="blue", category=category, mask=28)
    response = door.ask(manifest("green", "10.0.0.0/16"))
    assert "10.0.0.0/16 overlaps 10.0.7.0/24" in refused(response, "cidr_overlap")
    assert response["status"]["code"] == 403
    # What overlapped before is told, so that the rest of the object can be changed.
    old = manifest("green", "10.0.0.0/16")
    assert "overlaps" in warned(door.ask(changed(old, cidrs=["10.0.0.0/16", "10.9.0.0/16"]), old))


@pytest.mark.exhaustive
def test_what_is_refused_is_not_lost_among_what_is_told(door: Door) -> None:
    for number in range(25):
        _pool(door, f"10.0.{number}.0/24", name=f"blue-{number}", mask=28)
    _pool(door, "10.9.0.0/24", name="last", mask=28)
    old = manifest("green", "10.0.0.0/16")
    refused(door.ask(changed(old, cidrs=["10.0.0.0/16", "10.9.0.0/16"]), old), "cidr_overlap")


def test_an_orphan_of_the_pool_itself_comes_back_whole_or_not_at_all(door: Door) -> None:
    pool = _pool(door, "10.0.0.0/24", mask=28)
    _node(pool, "n1")
    with events.recorded_by(factories.BY):
        pool.cidrs.update(orphaned_at="2026-01-01T00:00Z")
    refused(door.ask(manifest("green", "10.0.0.0/25", mask=28)), "cidr_overlap")
    assert warned(door.ask(manifest("green", "10.0.0.0/24", mask=28))) == ""
    assert warned(door.ask(manifest("green", "10.0.0.0/16", mask=28))) == ""


WIDE, PARTS = "10.0.0.0/15", ("10.0.0.0/16", "10.1.0.0/16")


def test_a_cidr_in_use_that_another_one_replaces(door: Door) -> None:
    """Growth, merge, split and narrowing keep the blocks; what would lose them is refused."""
    pool = _pool(door, *PARTS, mask=28)
    _node(pool, "n1")
    parts = manifest("green", *PARTS, mask=28)
    assert warned(door.ask(changed(parts, cidrs=[WIDE]), parts)) == ""
    narrow = changed(parts, cidrs=["10.0.0.0/17", PARTS[1]])
    assert warned(door.ask(narrow, parts)) == ""
    message = refused(
        door.ask(changed(parts, cidrs=["10.0.128.0/17", PARTS[1]]), parts), "cidr_in_use"
    )
    assert message == (
        "10.0.0.0/17 cannot be removed: it has 1 held or cooling block: node n1 (10.0.0.0/28, held)"
    )


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (manifest("green", "10.0.0.7/16"), "spec.ipv4.cidrs.0"),
        (manifest("green", "10.0.0.0/16", mask=12), "spec.ipv4.maskSize"),
        (manifest("green", "10.0.0.0/16", "10.0.9.0/24"), "spec.ipv4.cidrs.1"),
        (
            manifest("green", TWO[0], pool=reserving(TWO[0], "10.0.0.9-10.0.0.3")),
            "spec.ipv4.pool.0.reservedRanges.0",
        ),
        (
            manifest("green", TWO[0], pool=reserving(TWO[0], "10.9.0.1-10.9.0.3")),
            "spec.ipv4.pool.0.reservedRanges.0",
        ),
        (manifest("green", TWO[0], pool=reserving(TWO[1], "10.1.0.1-10.1.0.3")), "spec.ipv4.pool"),
        (
            manifest("green", {"cidr": TWO[0], "reservedRange": "10.9.0.1-10.9.0.3"}),
            "spec.ipv4.cidrs.0.reservedRange",
        ),
        (manifest("green", {}, mask=24), "spec.ipv4.cidrs.0"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_field(door: Door, wrong: Any, told: str) -> None:
    response = door.ask(wrong)
    assert response["status"]["code"] == 422
    assert response["status"]["message"].startswith(told)
    assert response["status"]["details"]["causes"][0]["field"].startswith(told)


@pytest.mark.parametrize("version", ["v2", "v2alpha1"])
def test_what_is_wrong_already_can_be_labelled(door: Door, version: str) -> None:
    before = manifest("green", "10.0.0.7/16", version=version)
    after = copy.deepcopy(before)
    after["metadata"]["labels"] = {"a": "b"}
    assert warned(door.ask(after, before)) == ""


def test_a_name_of_another_kind_of_pool(door: Door) -> None:
    _pool(door, "10.9.0.0/24", name="nodes", category="vm", mask=32)
    refused(door.ask(manifest("nodes", "10.0.0.0/16")), "already_exists")
    # One that was there before can be changed, and go.
    two = manifest("nodes", "10.0.0.0/16", "10.1.0.0/16")
    assert "has a vm pool" in warned(door.ask(two, manifest("nodes", "10.0.0.0/16")))
    assert "has no pool nodes" in warned(door.ask(None, manifest("nodes", "10.0.0.0/16")))


def test_an_update_is_judged_by_the_register_when_the_old_object_is_hidden(door: Door) -> None:
    """Written with objects in `cidrs`, read through a version that knows strings."""
    _node(_pool(door), "n1")
    hidden = manifest("green", {}, version="v2alpha1")
    refused(door.ask(manifest("green", TWO[1], version="v2alpha1"), hidden), "cidr_in_use")
    refused(
        door.ask(manifest("green", *TWO, mask=25, version="v2alpha1"), hidden), "immutable_in_use"
    )
