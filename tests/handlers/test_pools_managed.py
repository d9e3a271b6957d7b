"""With the managed resource `pools` the register is right for its own pools, and nothing of others is forced."""

from __future__ import annotations

import pytest

from pools.clusters import drift
from pools.core import errors
from pools.core.cilium import podippool
from pools.models import Drift, Finding, ManagedResource
from pools.register import pools
from tests import factories
from tests.handlers.conftest import OLD, PROPOSAL
from tests.handlers.fleet import Fleet, manifest, reserved
from tests.kube import gateways
from tests.pools.conftest import Clock

A, B, C = "10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"
SPAN = "10.0.0.0-10.0.0.99"


@pytest.fixture
def managed(fleet: Fleet) -> Fleet:
    fleet.manage(ManagedResource.POOLS)
    return fleet


def _of(fleet: Fleet, name: str = "green") -> drift.ClusterObject:
    return drift.ClusterObject(fleet.cluster, podippool.KIND, name)


SHAPED = {
    "cilium.io_ciliumpodippools.v2": {
        "cidrs": [A, B],
        "maskSize": 24,
        "pool": [reserved(A, ("10.0.0.0", "10.0.0.99"))],
    },
    PROPOSAL: {"cidrs": [{"cidr": A, "reservedRange": SPAN}, {"cidr": B}], "maskSize": 24},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("definition", list(SHAPED))
def test_the_registers_pools_are_written_in_the_clusters_shape(
    managed: Fleet, definition: str
) -> None:
    pool = managed.make("green", A, B, reserved=[SPAN], labels={"a": "b"})
    assert managed.counted()["written"] == 1
    there = managed.there()["green"]
    assert there["spec"]["ipv4"] == SHAPED[definition]
    assert there["metadata"]["labels"] == {"a": "b"}
    assert managed.counted() == {"seen": 1, "changed": 0, "written": 0, "failed": 0}
    pools.unreserve(pool.reserved_ranges.get().pk, author=factories.BY)
    assert managed.counted()["written"] == 1
    pools.add_cidr(pool.pk, factories.entry(C), author=factories.BY)
    assert managed.counted()["written"] == 1
    assert managed.counted()["written"] == 0
    managed.manage()
    managed.passed()
    assert (managed.cidrs("green"), managed.ranges("green")) == ([A, B, C], [])


@pytest.mark.parametrize("definition", [OLD])
def test_ranges_that_the_shape_cannot_hold_are_not_left_out_silently(managed: Fleet) -> None:
    managed.make("green", A, reserved=[SPAN])
    managed.make("blue", B)
    managed.passed()
    assert list(managed.there()) == ["blue"]
    assert managed.there()["blue"]["spec"]["ipv4"]["cidrs"] == [B]
    assert managed.findings() == [("pool_not_writable", "green")]


def test_an_object_that_was_deleted_is_made_again(managed: Fleet, clock: Clock) -> None:
    managed.make("green", A)
    managed.passed()
    managed.remove("green")
    for _ in range(3):
        managed.passed()
        clock.advance(40)
    assert list(managed.there()) == ["green"]
    assert managed.findings() == []


def test_pools_that_were_only_taken_in_go_on_following(managed: Fleet) -> None:
    managed.put(manifest("green", A))
    assert managed.counted()["written"] == 0
    managed.put(manifest("green", A, B))
    assert managed.counted()["written"] == 0
    assert managed.cidrs("green") == [A, B]


def test_a_change_in_the_register_makes_a_pool_its_own(managed: Fleet) -> None:
    managed.put(manifest("green", A))
    managed.passed()
    pools.change(managed.pool("green").pk, pools.PoolChange(labels={"x": "y"}), author=factories.BY)
    assert managed.counted()["written"] == 1
    assert managed.there()["green"]["metadata"]["labels"] == {"x": "y"}
    assert managed.there()["green"]["spec"]["ipv4"]["cidrs"] == [A]
    assert not managed.pool("green").follows_cluster


def test_what_another_manager_owns_is_shown_and_not_forced(managed: Fleet) -> None:
    managed.put(manifest("green", A))
    managed.passed()
    pools.add_cidr(managed.pool("green").pk, factories.entry(B), author=factories.BY)
    assert managed.counted()["written"] == 0
    assert managed.there()["green"]["spec"]["ipv4"]["cidrs"] == [A]
    (row,) = Drift.objects.all()
    assert (row.path, row.desired, row.observed) == ("spec.ipv4.cidrs", [A, B], [A])
    assert row.managers == ["kubectl"]
    assert row.conflict
    assert [item.path for item in drift.apply(_of(managed), author=factories.BY)] == [row.path]


def test_what_nobody_else_owns_is_corrected(managed: Fleet) -> None:
    managed.make("green", A)
    managed.passed()
    with gateways.to(managed.server) as gateway:
        gateway.apply(gateways.POOLS, manifest("green", B, A), manager="cadastre")
    assert managed.counted()["written"] == 1
    assert managed.there()["green"]["spec"]["ipv4"]["cidrs"] == [A]
    assert (managed.cidrs("green"), managed.drift()) == ([A], [])


def test_applying_makes_the_register_right(managed: Fleet) -> None:
    """Of a pool that was only taken in: from now on its object is followed no more."""
    managed.put(manifest("green", A))
    managed.passed()
    assert drift.apply(_of(managed), author=factories.BY) == []
    managed.passed()
    managed.put(manifest("green", B, A))
    managed.passed()
    assert managed.cidrs("green") == [A]
    assert managed.drift() == [("green", "spec.ipv4.cidrs")]
    managed.put(manifest("green", A))
    managed.passed()
    assert managed.drift() == []


@pytest.mark.exhaustive
def test_adopting_takes_the_objects_values(managed: Fleet) -> None:
    managed.make("green", A)
    managed.passed()
    managed.put(manifest("green", B, A))
    managed.passed()
    assert managed.drift() == [("green", "spec.ipv4.cidrs")]
    drift.adopt(_of(managed), author=factories.BY)
    assert managed.counted()["written"] == 0
    assert (managed.cidrs("green"), managed.drift()) == ([B, A], [])
    assert not managed.pool("green").follows_cluster


def test_ignored_until_a_value_changes(managed: Fleet) -> None:
    managed.make("green", A)
    managed.passed()
    managed.put(manifest("green", B, A))
    managed.passed()
    row = drift.ignore(Drift.objects.get(), author=factories.WITH_REASON, user=factories.user())
    managed.passed()
    stored = Drift.objects.get()
    assert (stored.ignored_by, stored.ignored_reason) == (
        row.ignored_by,
        factories.WITH_REASON.reason,
    )
    managed.put(manifest("green", C, A))
    managed.passed()
    assert Drift.objects.get().ignored_at is None


def test_an_observed_cluster_is_not_written(fleet: Fleet) -> None:
    fleet.put(manifest("green", A))
    fleet.passed()
    with pytest.raises(errors.NotManaged):
        drift.apply(_of(fleet), author=factories.BY)


@pytest.mark.exhaustive
def test_a_pool_that_was_deleted_in_the_register_stays_in_the_cluster(managed: Fleet) -> None:
    pool = managed.make("green", A)
    managed.passed()
    pools.delete(pool.pk, author=factories.BY)
    for _ in range(2):
        assert managed.counted()["written"] == 0
    assert list(managed.there()) == ["green"]
    assert (managed.names(), managed.findings()) == ([], [("pool_not_in_register", "green")])
    drift.adopt(_of(managed), author=factories.BY)
    managed.passed()
    assert (managed.cidrs("green"), managed.findings()) == ([A], [])


def test_what_others_added_is_kept_and_told(managed: Fleet) -> None:
    managed.make("green", A)
    managed.passed()
    theirs = managed.there()["green"]
    theirs["spec"]["podSelector"] = {"matchLabels": {"x": "y"}}
    theirs["metadata"]["labels"] = {"argocd": "1"}
    for key in ("managedFields", "resourceVersion"):
        theirs["metadata"].pop(key)
    managed.put(theirs)
    for _ in range(2):
        assert managed.counted()["written"] == 0
    assert managed.findings() == [("more_in_cluster", "green")]
    assert "podSelector" in Finding.objects.get().message
    drift.adopt(_of(managed), author=factories.BY)
    managed.passed()
    assert managed.findings() == []
    assert managed.pool("green").pod_selector == {"matchLabels": {"x": "y"}}


def test_an_object_that_says_the_same_in_other_words_is_left_alone(managed: Fleet) -> None:
    six = {"cidrs": ["fd00::0/104"], "maskSize": 120}
    managed.put(manifest("green", A, ipv6=six))
    managed.passed()
    drift.apply(_of(managed), author=factories.BY)
    pools.change(managed.pool("green").pk, pools.PoolChange(labels={"x": "y"}), author=factories.BY)
    assert managed.counted() == {"seen": 1, "changed": 0, "written": 1, "failed": 0}
    assert managed.there()["green"]["spec"]["ipv6"] == six
    assert managed.counted()["written"] == 0


@pytest.mark.parametrize("definition", [PROPOSAL])
def test_strings_stay_strings_where_the_crd_has_objects(managed: Fleet) -> None:
    """Readers of v2alpha1 would be shown `cidrs: [{}]`."""
    managed.put(manifest("green", A, version="v2alpha1"))
    managed.passed()
    pools.change(managed.pool("green").pk, pools.PoolChange(labels={"x": "y"}), author=factories.BY)
    managed.passed()
    assert managed.there()["green"]["spec"]["ipv4"]["cidrs"] == [A]


def test_a_pool_with_its_only_cidr_in_another_pool(managed: Fleet) -> None:
    managed.make("mine", A)
    managed.put(manifest("theirs", "10.0.3.0/24"))
    managed.passed()
    assert managed.problems() == {"theirs": "cidr_overlap"}
    assert managed.findings() == [("cidr_overlap", f"theirs 10.0.3.0/24, mine {A}")]
    assert sorted(managed.there()) == ["mine", "theirs"]
