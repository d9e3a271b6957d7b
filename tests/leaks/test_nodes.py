"""Leaks of nodes: two observations say so."""

from datetime import timedelta
from typing import Any

import pytest

from pools.cilium.ciliumnodes import CiliumNodes
from pools.models import Block, Leak, Now, ObservedObject, PoolCIDR
from pools.platform import database
from pools.register.allocator import allocation
from pools.register.leaks import detection
from pools.register.leaks.references import ReferencedHolder, ReferenceReport, ingest_report
from tests import factories
from tests.handlers.node_world import manifest
from tests.leaks.conftest import GRACE
from tests.leaks.feeds import Feed, Nodes, count


def test_a_node_that_is_not_there_leaks_its_block(nodes: Nodes) -> None:
    nodes.node("n1", lists={"a": ["10.0.0.0/24"]})
    nodes.holds("gone")
    nodes.passed()
    assert (nodes.suspected(), nodes.leaked()) == (["gone"], [])
    nodes.clock.advance(GRACE)
    nodes.passed()
    assert nodes.leaked() == ["gone"]
    assert Leak.objects.get().source == "nodes"


def test_a_node_that_comes_back_is_not_suspected(nodes: Nodes) -> None:
    nodes.holds("late")
    nodes.passed()
    assert nodes.suspected() == ["late"]
    nodes.node("late")
    nodes.clock.advance(GRACE)
    nodes.passed()
    assert not Leak.objects.exists()


def test_a_block_that_was_allocated_while_the_cluster_was_listed(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its node may have come after the list was made."""

    def ingest(self: CiliumNodes, *_args: Any) -> None:
        nodes.clock.advance(1)
        nodes.holds("new")

    nodes.node("n1")
    monkeypatch.setattr(CiliumNodes, "ingest", ingest)
    nodes.passed()
    assert Block.objects.filter(holder_id="new").exists()
    assert not Leak.objects.exists()


def test_another_node_of_the_name_is_not_the_holder(nodes: Nodes) -> None:
    nodes.node("n1")
    nodes.holds("n1", uid="of an older one")
    nodes.twice()
    assert nodes.leaked() == ["n1"]


def test_a_holder_without_a_uid_is_told_by_its_name(nodes: Nodes) -> None:
    nodes.node("n1")
    nodes.holds("n1")
    nodes.holds("n2", uid=nodes.node("n2")["metadata"]["uid"])
    nodes.twice()
    assert not Leak.objects.exists()


def test_a_cidr_that_is_removed_while_in_use_and_comes_back_in_another_pool(nodes: Nodes) -> None:
    """The node goes on using the block: it is no leak, whatever pool its CIDR is in."""
    nodes.node("n1", lists={"a": ["10.0.0.0/24"]})
    nodes.passed()
    PoolCIDR.objects.update(orphaned_at=Now())
    nodes.pool("b", "10.7.0.0/16")
    nodes.twice()
    assert nodes.held() == {"10.0.0.0/24": "n1"}
    assert not Leak.objects.exists()


UNINSTALLED = "crd uninstalled"
TROUBLES: dict[str, dict[str, Any]] = {
    **{f"{status}": {"status": status} for status in (401, 403, 404, 410, 429, 500, 503)},
    **{effect: {"effect": effect} for effect in ("truncate", "html", "cut", "cut-body", "hang")},
    "second page": {"status": 500, "skip": 1},
    UNINSTALLED: {},
}


def _fails(nodes: Nodes, **fault: Any) -> None:
    """Nodes cannot be listed from now on."""
    nodes.fake.faults.add(verb="list", path="ciliumnodes", times=None, **fault)


@pytest.mark.sample(28)
@pytest.mark.parametrize("name", TROUBLES)
@pytest.mark.parametrize("before", [0, 1])
def test_an_error_is_no_observation(nodes: Nodes, name: str, before: int) -> None:
    """It neither makes a suspicion nor confirms one, nor clears it."""
    for number in range(501 if name == "second page" else 1):
        nodes.fake.put(manifest(f"n{number}"))
    nodes.holds("gone")
    for _ in range(before):
        nodes.passed()
        nodes.clock.advance(GRACE)
    if name == UNINSTALLED:
        nodes.fake.remove("customresourcedefinitions", "ciliumnodes.cilium.io")
    else:
        _fails(nodes, **TROUBLES[name])
    for _ in range(2):
        # A kind that is not served any more is a finding, and no fault of the pass.
        assert nodes.hastily().succeeded is (name == UNINSTALLED)
        nodes.clock.advance(GRACE)
    assert nodes.leaked() == []
    assert nodes.suspected() == ["gone"] * before


def test_after_a_restart_nothing_is_concluded_before_a_full_pass(nodes: Nodes) -> None:
    nodes.node("n1", lists={"a": ["10.0.0.0/24"]})
    nodes.holds("gone")
    nodes.passed()
    nodes.restarted()
    nodes.clock.advance(GRACE)
    nodes.tell(("MODIFIED", nodes.fake.object("ciliumnodes", "n1")))
    assert (nodes.suspected(), nodes.leaked()) == (["gone"], []), "a watch observes nothing"
    nodes.run(dry=True)
    assert nodes.leaked() == [], "nor does what is tried out"


def test_a_cluster_that_was_never_listed_has_no_leaks(nodes: Nodes) -> None:
    nodes.holds("n1")
    _fails(nodes, status=503)
    nodes.run()
    nodes.clock.advance(GRACE)
    nodes.run()
    assert not Leak.objects.exists()


def test_whom_one_source_sees_the_other_does_not_miss(nodes: Nodes) -> None:
    nodes.holds("tooled")
    nodes.holds("gone")
    nodes.node("n1")
    nodes.holds("n1")
    for number in range(2):
        report = ReferenceReport(nodes.cluster, "node", number, True, [ReferencedHolder("tooled")])
        ingest_report(report, author=factories.BY)
        nodes.passed()
        nodes.clock.advance(GRACE)
    assert nodes.leaked() == ["gone"]


def test_addresses_of_nodes_leak_where_nodes_are_called_as_in_the_cluster(nodes: Nodes) -> None:
    """Elsewhere tooling calls them as it likes, and a cluster knows nothing of that."""
    node_pool = factories.pool("2001:db8:1::/120", category="node", within=nodes.cluster)
    machines = factories.pool("2001:db8:2::/120", category="node", within=nodes.cluster)
    nodes.node("n1")
    names = {"n1": node_pool, "gone": node_pool, "m-1": machines, "m-2": machines}
    for name, pool in names.items():
        factories.take(pool, allocation.Holder("node", name, "a uid of its Node"))
    nodes.twice()
    assert nodes.leaked() == ["gone"]


def test_a_pass_that_finds_the_same_changes_no_list(nodes: Nodes) -> None:
    nodes.holds("gone")
    nodes.twice()
    rows = detection.confirmed_leaks().values_list("id", "missed_at", "confirmed_at")
    before = list(rows)
    nodes.passed()
    assert list(rows.all()) == before
    assert ObservedObject.objects.count() == 0
    assert database.now() >= before[0][2]


# --- Rule `leak-needs-two-observations`: complete ones, a grace apart, that did not see the holder
def test_one_observation_is_a_suspicion(feed: Feed) -> None:
    feed.holds("i-1")
    answer = feed.report()
    assert (answer["missed"], answer["leaked"]) == (1, 0)
    assert (feed.suspected(), feed.leaked()) == (["i-1"], [])


@pytest.mark.parametrize(("apart", "leaked"), [(GRACE - 1, []), (GRACE, ["i-1"])])
def test_the_second_one_counts_a_grace_later(feed: Feed, apart: int, leaked: list[str]) -> None:
    feed.holds("i-1")
    feed.holds("i-2")
    feed.twice("i-2", apart=apart)
    assert feed.leaked() == leaked
    assert feed.suspected() == ([] if leaked else ["i-1"])


def test_observations_in_between_do_not_begin_anew(feed: Feed) -> None:
    feed.holds("i-1")
    for _ in range(4):
        feed.report()
        feed.clock.advance(GRACE / 3)
    assert feed.leaked() == ["i-1"]
    assert Leak.objects.get().observations == 4


def test_who_is_seen_again_is_not_suspected_any_more(feed: Feed) -> None:
    feed.holds("i-1")
    feed.report()
    feed.clock.advance(GRACE)
    feed.report("i-1")
    assert count() == 0
    feed.report()
    assert (feed.suspected(), feed.leaked()) == (["i-1"], [])


def test_a_leak_ends_when_its_holder_is_seen_again(feed: Feed) -> None:
    feed.holds("i-1")
    feed.twice()
    feed.report("i-1")
    assert count() == 0


def test_a_delta_never_makes_a_leak_and_clears_one(feed: Feed) -> None:
    feed.holds("i-1")
    feed.holds("i-2")
    feed.report("i-1", "i-2")
    feed.report(complete=False, removed=[{"id": "i-1"}])
    feed.clock.advance(GRACE)
    feed.report(complete=False, removed=[{"id": "i-2"}])
    assert count() == 0
    feed.twice()
    assert feed.leaked() == ["i-1", "i-2"]
    feed.report("i-2", complete=False)
    assert feed.leaked() == ["i-1"]


def test_another_tenure_of_the_block_is_another_suspicion(feed: Feed) -> None:
    block = feed.holds("i-1")
    feed.report()
    feed.clock.advance(GRACE)
    factories.give_back(block)
    assert feed.holds("i-1")["id"] == block["id"], "it returns within its cooldown"
    assert (feed.suspected(), feed.leaked()) == ([], [])
    feed.report()
    assert (feed.suspected(), feed.leaked()) == (["i-1"], [])


def test_a_reader_that_began_early_misses_nothing_that_came_later(feed: Feed) -> None:
    """Rule `younger-than-the-list-is-not-missed` of an observation."""
    began = database.now()
    feed.clock.advance(10)
    feed.holds("i-1")
    feed.clock.advance(10)
    feed.report(observed_at=began.isoformat())
    assert count() == 0
    later = (database.now() + timedelta(days=2)).isoformat()
    feed.report(observed_at=later)
    assert feed.suspected() == ["i-1"], "a clock that is ahead is not believed"


def test_the_grace_is_counted_until_the_second_observation_began(feed: Feed) -> None:
    feed.holds("i-1")
    feed.report()
    began = database.now()
    feed.clock.advance(GRACE)
    feed.report(observed_at=began.isoformat())
    assert feed.leaked() == []
    feed.report()
    assert feed.leaked() == ["i-1"]
