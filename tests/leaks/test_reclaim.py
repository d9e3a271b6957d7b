"""Reclaiming is compare-and-set on what was seen, and always into a cooldown."""

from typing import Any

import pytest

from pools.models import Block, Event, Leak
from pools.register.allocator import allocation
from tests import factories
from tests.edges.api import refused
from tests.leaks.feeds import Feed, count, row


def test_a_leaked_block_cools_down_with_reason_and_event(feed: Feed) -> None:
    block = feed.holds("i-1", "u-1")
    feed.twice()
    answer = feed.reclaim(block, reason="the machine burnt down")
    assert answer.status_code == 200, answer.content
    assert answer.json()["state"] == "cooling"
    now = row(block)
    assert now.available_from is not None
    assert now.released_at is not None
    assert (now.available_from - now.released_at).total_seconds() == 3600
    event = Event.objects.filter(type="reclaimed").get()
    assert (event.reason, event.actor) == ("the machine burnt down", feed.api.user.username)
    assert (event.holder_id, event.cidr) == ("i-1", block["cidr"])
    assert count() == 0


def test_a_pool_without_a_cooldown_gives_nothing_back_at_once(feed: Feed) -> None:
    feed.pool = factories.pool("10.8.0.0/24", within=feed.cluster, cooldown=0)
    block = feed.holds("i-1")
    feed.twice()
    assert feed.reclaim(block).json()["state"] == "cooling"
    now = row(block)
    assert now.available_from is not None
    assert now.released_at is not None
    assert (now.available_from - now.released_at).total_seconds() == 900


def test_repeated_it_says_the_same(feed: Feed) -> None:
    block = feed.holds("i-1")
    feed.twice()
    first = feed.reclaim(block).json()
    assert feed.reclaim(block).json() == first
    assert Event.objects.filter(type="reclaimed").count() == 1


def test_what_never_leaked_is_refused(feed: Feed) -> None:
    block = feed.holds("i-1")
    refused(feed.reclaim(block), 409, "not_leaked")
    feed.report()
    refused(feed.reclaim(block), 409, "not_leaked")
    assert row(block).state == "held"


def test_who_is_referenced_again_is_left_alone(feed: Feed) -> None:
    """Also when the leak that was seen is still there: it is judged at this moment."""
    block = feed.holds("i-1")
    feed.twice()
    rows = list(Leak.objects.values())
    feed.report("i-1", complete=False)
    refused(feed.reclaim(block), 409, "referenced_again")
    Leak.objects.bulk_create(Leak(**item) for item in rows)
    refused(feed.reclaim(block), 409, "referenced_again")
    assert row(block).state == "held"


def test_what_changed_since_is_left_alone(feed: Feed) -> None:
    block = feed.holds("i-1", "u-1")
    feed.twice()
    for other in ({"kind": "instance", "id": "i-2"}, {"kind": "node", "id": "i-1"},
                  {"kind": "instance", "id": "i-1", "uid": "u-2"}):  # fmt: skip
        refused(feed.reclaim(block, holder=other), 409, "holder_changed")
    refused(feed.reclaim(block, allocated_at="2026-01-01T00:00:00Z"), 409, "holder_changed")
    refused(feed.reclaim(block, org="another"), 409, "holder_changed")
    assert row(block).state == "held"
    assert feed.reclaim(block, allocated_at=block["allocated_at"]).status_code == 200


def test_another_tenure_of_the_same_holder_did_not_leak(feed: Feed) -> None:
    block = feed.holds("i-1")
    feed.twice()
    factories.give_back(block)
    feed.clock.advance(5)
    feed.holds("i-1")
    refused(feed.reclaim(block, allocated_at=block["allocated_at"]), 409, "holder_changed")
    refused(feed.reclaim(block), 409, "not_leaked")


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"holder": {"kind": "instance", "id": "i-1"}}, "required"),
        ({"holder": {"kind": "instance", "id": "i-1"}, "reason": ""}, "blank"),
        ({"reason": "gone"}, "required"),
        ({"holder": {"kind": "instance"}, "reason": "gone"}, "required"),
        ({"holder": {"kind": "instance", "id": "i-1", "uid": ""}, "reason": "gone"}, "blank"),
        ({"holder": {"kind": "instance", "id": "i-1"}, "reason": "x", "force": True}, "unknown_field"),
        ({"holder": {"kind": "instance", "id": "i-1"}, "reason": "x", "allocated_at": "now"}, "time"),
    ],
)  # fmt: skip
def test_odd_bodies(feed: Feed, body: Any, code: str) -> None:
    block = feed.holds("i-1")
    feed.twice()
    refused(feed.api("POST", f"blocks/{block['id']}/reclaim/", body), 400, code)
    assert row(block).state == "held"


def test_many_at_once_with_a_result_for_each(feed: Feed) -> None:
    leaked, back, never = (feed.holds(name) for name in ("i-1", "i-2", "i-3"))
    feed.twice("i-3")
    feed.report("i-2", complete=False)
    blocks = [{"id": item["id"], "holder": {"kind": "instance", "id": item["holder"]["id"]}}
              for item in (leaked, back, never)]  # fmt: skip
    blocks.append({"id": 1 << 40, "holder": {"kind": "instance", "id": "i"}})
    body = {"blocks": blocks, "reason": "gone"}
    answer = feed.api("POST", "leaks/reclaim/", body)
    assert answer.status_code == 200, answer.content
    outcomes = [(result["outcome"], result["code"]) for result in answer.json()["results"]]
    assert outcomes == [
        ("reclaimed", ""), ("refused", "referenced_again"), ("refused", "referenced_again"),
        ("refused", "not_found"),
    ]  # fmt: skip
    again = feed.api("POST", "leaks/reclaim/", body).json()["results"]
    assert again[0]["outcome"] == "repeated"
    assert list(Block.objects.filter(state="cooling").values_list("id", flat=True)) == [
        leaked["id"]
    ]


def test_an_environment_is_told_by_its_organisation(feed: Feed) -> None:
    """Two organisations may each have an environment of one name."""
    feed.kind = "env"
    feed.pool = factories.pool("10.7.0.0/24", within=feed.cluster, category="ipv4")
    holder = allocation.Holder("env", "prod")
    for org in ("acme", "umbrella"):
        factories.take(feed.pool, holder, org=org)
    feed.twice({"id": "prod", "org": "acme"})
    assert list(Leak.objects.values_list("block__org", flat=True)) == ["umbrella"]
    feed.report("prod")
    assert count() == 0, "without an organisation any of that name is meant"
