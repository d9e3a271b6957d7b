"""An observed cluster's pools are taken in and followed; nothing is written to it."""

from __future__ import annotations

import pytest

from pools.models import Block, Event, Pool, PoolCIDR
from pools.register import pools
from tests import factories
from tests.handlers.conftest import PROPOSAL
from tests.handlers.fleet import Fleet, manifest, reserved
from tests.pools.conftest import Clock

A, B, C = "10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"
RANGE = reserved(A, ("10.0.0.0", "10.0.0.255"))


def test_pools_are_taken_in_with_all_that_they_say(fleet: Fleet) -> None:
    fleet.put(
        manifest(
            "green", A, B,
            pool=[RANGE],
            podSelector={"matchLabels": {"team": "green"}},
            namespaceSelector={"matchExpressions": [{"key": "a", "operator": "Exists"}]},
            ipv6={"cidrs": ["fd00::/104"], "maskSize": 120},
            allowFirstIP=True,
            metadata={"labels": {"a": "b"}, "annotations": {"ipam.cilium.io/skip-masquerade": "true"}},
        )
    )  # fmt: skip
    assert fleet.counted() == {"seen": 1, "changed": 1, "written": 0, "failed": 0}
    pool = fleet.pool("green")
    assert (pool.category, pool.mask_size_v4, pool.mask_size_v6) == ("pod", 24, 120)
    assert (pool.allow_first_ip, pool.allow_last_ip, pool.follows_cluster) == (True, False, True)
    assert pool.labels == {"a": "b"}
    assert pool.annotations == {"ipam.cilium.io/skip-masquerade": "true"}
    assert pool.pod_selector == {"matchLabels": {"team": "green"}}
    assert pool.namespace_selector == {"matchExpressions": [{"key": "a", "operator": "Exists"}]}
    assert fleet.cidrs("green") == [A, B]
    assert fleet.cidrs("green", 6) == ["fd00::/104"]
    assert fleet.ranges("green") == ["10.0.0.0-10.0.0.255"]
    assert factories.take(pool, family=4)["cidr"] == "10.0.1.0/24"
    event = Event.objects.filter(pool_id=pool.pk, type__startswith="pool").first()
    assert event.actor == f"cluster {fleet.cluster.name}"


@pytest.mark.parametrize("count", [1, 3])
def test_a_second_pass_changes_nothing(fleet: Fleet, count: int) -> None:
    for number in range(count):
        fleet.put(manifest(f"p{number}", f"10.{number}.0.0/16"))
    fleet.passed()
    before = list(Pool.objects.order_by("pk").values()), Event.objects.count()
    assert fleet.counted() == {"seen": count, "changed": 0, "written": 0, "failed": 0}
    assert before == (list(Pool.objects.order_by("pk").values()), Event.objects.count())


def test_changes_are_followed(fleet: Fleet) -> None:
    fleet.follow(manifest("green", A, B, pool=[RANGE]))
    fleet.follow(manifest("green", C, A, metadata={"labels": {"x": "y"}}, podSelector={}))
    assert fleet.cidrs("green") == [C, A]
    assert fleet.ranges("green") == []
    assert (fleet.pool("green").labels, fleet.pool("green").pod_selector) == ({"x": "y"}, {})


def test_what_somebody_changed_in_the_register_goes_back(fleet: Fleet) -> None:
    fleet.follow(manifest("green", A))
    pools.add_cidr(fleet.pool("green").pk, factories.entry(B), author=factories.BY)
    fleet.passed()
    assert fleet.cidrs("green") == [A]


def test_a_lost_cidr_in_use_is_an_orphan_until_it_comes_back(fleet: Fleet) -> None:
    fleet.follow(manifest("green", A, B))
    block = factories.take(fleet.pool("green"), factories.holder("n1", kind="node"))
    fleet.follow(manifest("green", B))
    assert fleet.cidrs("green") == [B]
    assert fleet.findings() == [("orphaned_cidr", f"green {A}")]
    fleet.follow(manifest("green", B, A))
    assert fleet.cidrs("green") == [B, A]
    assert fleet.findings() == []
    assert Block.objects.get(holder_id="n1").cidr == factories.row(block).cidr


@pytest.mark.exhaustive
def test_an_orphan_is_not_given_to_another_pool(fleet: Fleet) -> None:
    """Cilium #41986: remove an in-use CIDR, add it again under another pool's name."""
    fleet.follow(manifest("green", A, B))
    block = factories.take(fleet.pool("green"), factories.holder("n1", kind="node"))
    fleet.follow(manifest("green", B), manifest("blue", A))
    assert fleet.names() == ["green"]
    assert fleet.problems() == {"blue": "cidr_overlap"}
    assert [code for code, _ in fleet.findings()] == ["cidr_overlap", "orphaned_cidr"]
    assert Block.objects.filter(cidr=block["cidr"]).count() == 1
    factories.give_back(block)
    fleet.passed()
    fleet.passed()
    assert fleet.problems() == {}
    assert fleet.cidrs("blue") == [A]
    assert factories.take(fleet.pool("blue"))["cidr"] == block["cidr"]


def test_a_cidr_may_move_between_pools_when_nothing_holds_it(fleet: Fleet) -> None:
    fleet.follow(manifest("a", A), manifest("b", B, C))
    fleet.follow(manifest("a", A, C), manifest("b", B))
    assert (fleet.cidrs("a"), fleet.cidrs("b")) == ([A, C], [B])


def test_overlaps_are_refused_and_both_pools_named(fleet: Fleet) -> None:
    fleet.follow(manifest("a", "10.0.0.0/15"), manifest("b", A), manifest("c", C))
    assert fleet.names() == ["a", "c"]
    assert fleet.problems() == {"b": "cidr_overlap"}
    assert fleet.findings() == [("cidr_overlap", f"b {A}, a 10.0.0.0/15")]


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    "changed", [manifest("green", A, mask=25), manifest("green", A, allowLastIP=True)]
)
def test_what_never_changes_is_a_problem_of_the_object(fleet: Fleet, changed: dict) -> None:
    fleet.follow(manifest("green", A))
    fleet.follow(changed)
    assert fleet.problems() == {"green": "immutable_in_use"}
    assert (fleet.pool("green").mask_size_v4, fleet.pool("green").allow_last_ip) == (24, False)


def test_a_name_that_another_category_has(fleet: Fleet) -> None:
    factories.pool("10.9.0.0/24", name="green", within=fleet.cluster)
    fleet.follow(manifest("green", A))
    assert fleet.problems() == {"green": "already_exists"}


def test_one_bad_object_fails_alone(fleet: Fleet) -> None:
    fleet.follow(manifest("a", A), manifest("b", B, "10.1.3.0/24"), manifest("c", C))
    assert fleet.names() == ["a", "c"]
    assert fleet.problems() == {"b": "cidr_overlap"}
    assert fleet.findings() == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("in_use", [False, True])
def test_a_deleted_pool_goes_or_is_an_orphan(fleet: Fleet, clock: Clock, in_use: bool) -> None:
    fleet.follow(manifest("green", A))
    if in_use:
        factories.take(fleet.pool("green"))
    fleet.remove("green")
    fleet.passed()
    assert fleet.cidrs("green") == [A], "one list without it is no proof"
    clock.advance(40)
    fleet.passed()
    if not in_use:
        assert fleet.names() == []
        return
    assert fleet.findings() == [("orphaned_pool", "green")]
    assert factories.drain(fleet.pool("green")) == []
    fleet.follow(manifest("green", A))
    assert (fleet.findings(), fleet.cidrs("green")) == ([], [A])


@pytest.mark.exhaustive
def test_a_pool_made_again_with_another_mask_size(fleet: Fleet, clock: Clock) -> None:
    """The same name, a new uid (rule `uid-is-identity`)."""
    fleet.follow(manifest("green", A))
    block = factories.take(fleet.pool("green"))
    fleet.remove("green")
    fleet.put(manifest("green", A, mask=26))
    for _ in range(3):
        fleet.passed()
        clock.advance(40)
    assert fleet.problems() == {"green": "immutable_in_use"}
    assert Block.objects.get(state="held").cidr == factories.row(block).cidr
    factories.give_back(block)
    fleet.passed()
    fleet.passed()
    assert (fleet.problems(), fleet.pool("green").mask_size_v4) == ({}, 26)


def test_pools_that_the_cluster_never_had_are_left_alone(fleet: Fleet) -> None:
    fleet.make("mine", A)
    fleet.passed()
    fleet.passed()
    assert fleet.cidrs("mine") == [A]
    assert fleet.findings() == [("pool_not_in_cluster", "mine")]


@pytest.mark.parametrize("definition", [PROPOSAL])
def test_both_versions_of_the_proposal_are_read(fleet: Fleet) -> None:
    pool = manifest("green")
    pool["spec"]["ipv4"]["cidrs"] = [
        {"cidr": A, "reservedRange": "10.0.0.0-10.0.0.99"}, {"cidr": B},
    ]  # fmt: skip
    fleet.follow(pool, manifest("old", C, version="v2alpha1"))
    assert (fleet.cidrs("green"), fleet.ranges("green")) == ([A, B], ["10.0.0.0-10.0.0.99"])
    assert fleet.cidrs("old") == [C]


def test_nothing_is_written(fleet: Fleet) -> None:
    fleet.follow(manifest("green", A))
    pools.add_cidr(fleet.pool("green").pk, factories.entry(B), author=factories.BY)
    fleet.make("mine", C)
    before = fleet.there()
    assert [fleet.counted()["written"] for _ in range(2)] == [0, 0]
    assert fleet.there() == before


def test_many_new_pools_cost_few_statements(
    fleet: Fleet, django_assert_max_num_queries: object
) -> None:
    for number in range(60):
        cidr = f"10.{number}.0.0/16"
        pool = [reserved(cidr, (f"10.{number}.0.0", f"10.{number}.0.9"))] if number < 5 else None
        fleet.put(manifest(f"p{number}", cidr, pool=pool))
    with django_assert_max_num_queries(80):  # type: ignore[operator]
        fleet.passed()
    assert PoolCIDR.objects.count() == 60
    assert fleet.ranges("p0") == ["10.0.0.0-10.0.0.9"]
