"""Reports of what is in use, and what is reclaimed by them."""

from typing import Any

import pytest

from pools.api.leaks import LARGEST
from pools.models import Block, Event, Leak, Reference, ReferenceFeed
from pools.register.allocator import allocation
from tests import factories
from tests.edges.api import fields, refused
from tests.leaks.conftest import GRACE
from tests.leaks.feeds import Feed, count, row


def test_an_older_number_is_refused_and_changes_nothing(feed: Feed) -> None:
    feed.report("i-1", sequence=7)
    refused(feed.send("i-2", sequence=6), 409, "stale_sequence")
    assert list(Reference.objects.values_list("holder_id", flat=True)) == ["i-1"]


def test_a_repeated_report_is_answered_as_before_and_observes_nothing(feed: Feed) -> None:
    feed.holds("gone")
    first = feed.send("i-1", {"id": "i-2", "uid": "u"}, sequence=3)
    feed.clock.advance(GRACE)
    again = feed.send({"id": "i-2", "uid": "u"}, "i-1", "i-1", sequence=3)
    assert again.content == first.content
    assert (feed.leaked(), Leak.objects.get().observations) == ([], 1)


@pytest.mark.parametrize(
    ("holders", "more"),
    [(("i-1", "i-2"), {}), ((), {}), (("i-1",), {"complete": False}),
     (("i-1",), {"observed_at": "2026-01-01T00:00:00Z"})],
)  # fmt: skip
def test_the_same_number_with_another_body_is_refused(
    feed: Feed, holders: tuple[str, ...], more: Any
) -> None:
    feed.report("i-1", sequence=3)
    refused(feed.send(*holders, sequence=3, **more), 409, "sequence_reused")


def test_each_kind_and_cluster_has_numbers_of_its_own(feed: Feed) -> None:
    feed.report("i-1", sequence=9)
    feed.kind = "node"
    feed.report("n-1", sequence=1)
    assert ReferenceFeed.objects.count() == 2


def test_a_snapshot_replaces_and_a_delta_adds_and_removes(feed: Feed) -> None:
    assert feed.report("a", "b", "b")["holders"] == 2
    assert feed.report("c", complete=False, removed=[{"id": "a"}])["holders"] == 2
    assert sorted(Reference.objects.values_list("holder_id", flat=True)) == ["b", "c"]
    feed.report("c", "d")
    assert sorted(Reference.objects.values_list("holder_id", flat=True)) == ["c", "d"]
    feed.report({"id": "d", "uid": "2"}, complete=False, removed=[{"id": "d", "uid": "1"}])
    rows = Reference.objects.filter(holder_id="d").values_list("holder_uid", flat=True)
    assert sorted(rows) == ["", "2"]


def test_the_same_name_with_another_uid_is_not_the_holder(feed: Feed) -> None:
    feed.holds("i-1", "u-1")
    feed.holds("i-2")
    feed.holds("i-3", "u-3")
    feed.twice({"id": "i-1", "uid": "u-2"}, {"id": "i-2", "uid": "whose"}, "i-3")
    assert feed.leaked() == ["i-1"]


def test_two_pods_of_one_vm_name_it_twice(feed: Feed) -> None:
    """A live migration: tooling that goes by pods says the VM, by its uid, twice."""
    feed.kind = "vm"
    feed.holds("blue/vm1", "u-1")
    twice = [{"id": "blue/vm1", "uid": "u-1"}] * 2
    assert feed.report(*twice)["holders"] == 1
    feed.clock.advance(GRACE)
    feed.report(*twice)
    assert count() == 0


@pytest.mark.sample(4)
@pytest.mark.parametrize(
    ("change", "problems"),
    [
        ({"cluster": "nowhere"}, {"cluster": "unknown_cluster"}),
        ({"cluster": 7}, {"cluster": "wrong_type"}),
        ({"cluster": "\u0000"}, {"": "encoding"}),
        ({"holder_kind": "Node"}, {"holder_kind": "k8s_name"}),
        ({"holder_kind": "n" * 64}, {"holder_kind": "k8s_name"}),
        ({"holder_kind": ["node"]}, {"holder_kind": "wrong_type"}),
        ({"sequence": -1}, {"sequence": "out_of_range"}),
        ({"sequence": 1 << 63}, {"sequence": "out_of_range"}),
        ({"sequence": "1"}, {"sequence": "wrong_type"}),
        ({"sequence": 1.0}, {"sequence": "wrong_type"}),
        ({"sequence": True}, {"sequence": "wrong_type"}),
        ({"complete": "yes"}, {"complete": "wrong_type"}),
        ({"complete": None}, {"complete": "required"}),
        ({"holders": None}, {"holders": "required"}),
        ({"holders": {"id": "a"}}, {"holders": "wrong_type"}),
        ({"holders": ["a"]}, {"holders.0": "wrong_type"}),
        ({"holders": [{"id": "a"}, {"uid": "b"}]}, {"holders.1.id": "required"}),
        ({"holders": [{"id": "a", "uid": ""}]}, {"holders.0.uid": "blank"}),
        ({"holders": [{"id": " a"}]}, {"holders.0.id": "blank"}),
        ({"holders": [{"id": "a\u202eb"}]}, {"holders.0.id": "invisible_character"}),
        ({"holders": [{"id": "a" * 254}]}, {"holders.0.id": "too_long"}),
        ({"holders": [{"id": 1}]}, {"holders.0.id": "wrong_type"}),
        ({"holders": [{"id": "a", "name": "b"}]}, {"holders.0.name": "unknown_field"}),
        ({"removed": [{"id": "b"}]}, {"removed": "conflicting_fields"}),
        ({"complete": False, "removed": [{"id": "a"}]}, {"removed": "conflicting_fields"}),
        ({"observed_at": "yesterday"}, {"observed_at": "time"}),
        ({"observed_at": "2026-05-05T14:02:00"}, {"observed_at": "time"}),
        ({"more": 1}, {"more": "unknown_field"}),
    ],
)  # fmt: skip
def test_odd_bodies(feed: Feed, change: dict[str, Any], problems: dict[str, str]) -> None:
    body = {
        "cluster": feed.cluster.name, "holder_kind": "node", "sequence": 1, "complete": True,
        "holders": [{"id": "a"}],
    } | change  # fmt: skip
    problem = feed.api("POST", "references/", body).json()
    assert problem["status"] == 400
    if "" not in problems:
        assert fields(problem) == problems
    assert not ReferenceFeed.objects.exists()


def test_a_body_that_is_too_large(feed: Feed) -> None:
    refused(feed.api("POST", "references/", b" " * (LARGEST + 1)), 413, "too_large")


def test_feeds_are_listed_with_their_state(feed: Feed) -> None:
    feed.report("i-1", "i-2", sequence=4)
    feed.report("i-3", complete=False)
    (result,) = feed.api("GET", f"references/?cluster={feed.cluster.name}").json()["results"]
    assert (result["sequence"], result["holders"], result["holder_kind"]) == (5, 3, "instance")
    assert result["reporter"] == feed.api.user.username
    assert feed.api("GET", "references/?holder_kind=node").json()["results"] == []


# --- Reclaiming is compare-and-set on what was seen, and always into a cooldown -------------------
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
def test_odd_bodies_to_reclaim(feed: Feed, body: Any, code: str) -> None:
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
    assert Block.objects.get(state="cooling").pk == leaked["id"]


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
