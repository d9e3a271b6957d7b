"""Pools of a managed cluster: written, not written, and written sooner."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.db import transaction

from pools import models
from pools.admin.overview import overview
from pools.admin.pools import page
from pools.cilium import pool_sync
from pools.clusters import drift
from pools.core import errors
from pools.core.cilium import podippool
from pools.core.forecast import ForecastState
from pools.platform import events
from pools.register import manifests, pools, usage
from pools.register.utilization import forecasts, samples
from tests import factories
from tests.handlers import fleet as fleets
from tests.handlers.conftest import OLD, PROPOSAL, SHIPPED
from tests.handlers.fleet import Fleet, manifest, reserved
from tests.handlers.node_world import World
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock

A, B, C = "10.0.0.0/16", "10.1.0.0/16", "10.2.0.0/16"
SPAN = "10.0.0.0-10.0.0.99"


@pytest.fixture
def managed(fleet: Fleet) -> Fleet:
    fleet.manage(models.ManagedResource.POOLS)
    return fleet


def _of(fleet: Fleet, name: str = "green") -> drift.ClusterObject:
    return drift.ClusterObject(fleet.cluster, podippool.KIND, name)


SHAPED = {
    SHIPPED: {"cidrs": [A, B], "pool": [reserved(A, ("10.0.0.0", "10.0.0.99"))]},
    PROPOSAL: {"cidrs": [{"cidr": A, "reservedRange": SPAN}, {"cidr": B}]},
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("definition", list(SHAPED))
def test_the_registers_pools_are_written_in_the_clusters_shape(
    managed: Fleet, definition: str
) -> None:
    pool = managed.make("green", A, B, reserved=[SPAN], labels={"a": "b"})
    assert managed.counted()["written"] == 1
    there = managed.there()["green"]
    assert there["spec"]["ipv4"] == SHAPED[definition] | {"maskSize": 24}
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
    managed.follow(manifest("green", A))
    pools.change(managed.pool("green").pk, pools.PoolChange(labels={"x": "y"}), author=factories.BY)
    assert managed.counted()["written"] == 1
    assert managed.there()["green"]["metadata"]["labels"] == {"x": "y"}
    assert managed.there()["green"]["spec"]["ipv4"]["cidrs"] == [A]
    assert not managed.pool("green").follows_cluster


def test_what_another_manager_owns_is_shown_and_not_forced(managed: Fleet) -> None:
    managed.follow(manifest("green", A))
    pools.add_cidr(managed.pool("green").pk, factories.entry(B), author=factories.BY)
    assert managed.counted()["written"] == 0
    assert managed.there()["green"]["spec"]["ipv4"]["cidrs"] == [A]
    (row,) = models.Drift.objects.all()
    assert (row.path, row.desired, row.observed) == ("spec.ipv4.cidrs", [A, B], [A])
    assert row.managers == ["kubectl"]
    assert row.conflict
    assert [item.path for item in drift.apply(_of(managed), author=factories.BY)] == [row.path]


def test_what_nobody_else_owns_is_corrected(managed: Fleet) -> None:
    """Who removes a field does not own it."""
    managed.make("green", A, reserved=["10.0.0.0-10.0.0.9"])
    managed.passed()
    managed.put(manifest("green", A))
    assert managed.counted()["written"] == 1
    assert managed.there()["green"]["spec"]["ipv4"]["pool"] == [
        reserved(A, ("10.0.0.0", "10.0.0.9"))
    ]
    assert (managed.ranges("green"), managed.drift()) == (["10.0.0.0-10.0.0.9"], [])


def test_applying_makes_the_register_right(managed: Fleet) -> None:
    """Of a pool that was only taken in: from now on its object is followed no more."""
    managed.follow(manifest("green", A))
    assert drift.apply(_of(managed), author=factories.BY) == []
    managed.passed()
    managed.follow(manifest("green", B, A))
    assert managed.cidrs("green") == [A]
    assert managed.drift() == [("green", "spec.ipv4.cidrs")]
    managed.follow(manifest("green", A))
    assert managed.drift() == []


@pytest.mark.exhaustive
def test_adopting_takes_the_objects_values(managed: Fleet) -> None:
    managed.make("green", A)
    managed.passed()
    managed.follow(manifest("green", B, A))
    assert managed.drift() == [("green", "spec.ipv4.cidrs")]
    drift.adopt(_of(managed), author=factories.BY)
    assert managed.counted()["written"] == 0
    assert (managed.cidrs("green"), managed.drift()) == ([B, A], [])
    assert not managed.pool("green").follows_cluster


def test_ignored_until_a_value_changes(managed: Fleet) -> None:
    managed.make("green", A)
    managed.passed()
    managed.follow(manifest("green", B, A))
    author, user = factories.WITH_REASON, factories.user()
    row = drift.ignore(models.Drift.objects.get(), author=author, user=user)
    managed.passed()
    stored = models.Drift.objects.get()
    assert (stored.ignored_by, stored.ignored_reason) == (row.ignored_by, author.reason)
    managed.follow(manifest("green", C, A))
    assert models.Drift.objects.get().ignored_at is None


def test_an_observed_cluster_is_not_written(fleet: Fleet) -> None:
    fleet.follow(manifest("green", A))
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
    assert "podSelector" in models.Finding.objects.get().message
    drift.adopt(_of(managed), author=factories.BY)
    managed.passed()
    assert managed.findings() == []
    assert managed.pool("green").pod_selector == {"matchLabels": {"x": "y"}}


def test_an_object_that_says_the_same_in_other_words_is_left_alone(managed: Fleet) -> None:
    six = {"cidrs": ["fd00::0/104"], "maskSize": 120}
    managed.follow(manifest("green", A, ipv6=six))
    drift.apply(_of(managed), author=factories.BY)
    pools.change(managed.pool("green").pk, pools.PoolChange(labels={"x": "y"}), author=factories.BY)
    assert managed.counted() == {"seen": 1, "changed": 0, "written": 1, "failed": 0}
    assert managed.there()["green"]["spec"]["ipv6"] == six
    assert managed.counted()["written"] == 0


@pytest.mark.parametrize("definition", [PROPOSAL])
def test_strings_stay_strings_where_the_crd_has_objects(managed: Fleet) -> None:
    """Readers of v2alpha1 would be shown `cidrs: [{}]`."""
    managed.follow(manifest("green", A, version="v2alpha1"))
    pools.change(managed.pool("green").pk, pools.PoolChange(labels={"x": "y"}), author=factories.BY)
    managed.passed()
    assert managed.there()["green"]["spec"]["ipv4"]["cidrs"] == [A]


def test_a_pool_with_its_only_cidr_in_another_pool(managed: Fleet) -> None:
    managed.make("mine", A)
    managed.follow(manifest("theirs", "10.0.3.0/24"))
    assert managed.problems() == {"theirs": "cidr_overlap"}
    assert managed.findings() == [("cidr_overlap", f"theirs 10.0.3.0/24, mine {A}")]
    assert sorted(managed.there()) == ["mine", "theirs"]


# --- A pool that the cluster does not have yet is not full; what was adopted differs no more ------
@pytest.mark.parametrize("definition", [OLD], indirect=True)
def test_a_pool_that_the_cluster_does_not_have_yet_is_not_full(fleet: Fleet) -> None:
    fleet.put(fleets.manifest("other", "10.60.0.0/16", version="v2alpha1"))
    fleet.manage(models.ManagedResource.POOLS)
    fleet.passed()
    pool = fleet.make("green", "10.61.0.0/16", reserved=["10.61.0.0-10.61.0.255"])
    fleet.follow(fleets.manifest("green", "10.62.0.0/16", version="v2alpha1"))
    fleet.passed()
    assert ("cidr_addition_pending", "green 10.61.0.0/16") in fleet.findings()
    counts = usage.pool_usage(models.Pool.objects.get(pk=pool.pk))[4]
    assert (counts.free, counts.used) == (0, 0)
    assert counts.waits_for_cluster
    assert (counts.ratio, counts.percent) == (0.0, 0)
    assert page.pool_state({4: counts}, draining=False) == "pending"
    samples.take_samples()
    forecasts.refresh_forecasts()
    assert models.PoolForecast.objects.get(pool=pool, family=4).state != ForecastState.FULL
    summary = {measured.pool.name: measured for measured in overview.summarize().pools}
    assert (summary["green"].state, summary["green"].percent) == ("pending", 0)


def test_a_pool_that_is_used_up_is_full_still(db: None) -> None:
    pool = factories.pool("10.0.0.0/31")
    factories.drain(pool)
    counts = usage.pool_usage(pool)[4]
    assert (counts.ratio, counts.percent) == (1.0, 100)
    assert page.pool_state({4: counts}, draining=False) == "full"


@pytest.mark.exhaustive
@pytest.mark.parametrize("serving", [True, False])
def test_the_advice_on_cooldowns(fake: FakeCluster, clock: Clock, serving: bool) -> None:
    world = World(fake, managed_resource=serving)
    world.pool("a", "10.0.0.0/24", cooldown=600)
    world.follow_node("n1", lists={"a": ["10.0.0.0/24"]})
    world.follow_node("n1")
    clock.advance(10)
    world.follow_node("n2", lists={"a": ["10.0.0.0/24"]})
    message = models.Finding.objects.get(code="cooldown_not_kept").message
    assert ("another controller" in message) == serving
    assert ("if it writes pod-cidrs" in message) != serving


# --- A change of a pod pool makes its cluster due, in the transaction of the change ---------------
FAR = "2100-01-01T00:00:00Z"
CHANGES: dict[str, Callable[[models.Pool], object]] = {
    "add": lambda pool: pools.add_cidr(pool.pk, factories.entry("10.1.0.0/16"), author=factories.BY),
    "remove": lambda pool: pools.remove_cidr(factories.cidr(pool).pk, author=factories.BY),
    "reserve": lambda pool: factories.reserve(pool, "10.0.0.0-10.0.0.9"),
    "change": lambda pool: pools.change(pool.pk, pools.PoolChange(labels={"a": "b"}), author=factories.BY),
    "delete": lambda pool: pools.delete(pool.pk, author=factories.BY),
    "make": lambda pool: factories.pool("10.1.0.0/16", within=pool.cluster, category="pod", mask=24),
    "import": lambda pool: manifests.apply_manifests(_TEXT, pool.cluster, author=factories.BY),
}  # fmt: skip
_TEXT = b"""
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata: {name: imported}
spec: {ipv4: {cidrs: [10.7.0.0/16], maskSize: 24}}
"""


def _rests(*cidrs: str, **more: Any) -> models.Pool:
    """A pool of a cluster that is connected, for which nothing is due for some time."""
    pool = factories.pool(*cidrs, **more)
    models.Connection.objects.create(cluster=pool.cluster, server="https://k", due_at=FAR)
    return pool


@pytest.fixture
def resting() -> models.Pool:
    return _rests("10.0.0.0/16", category="pod", mask=24)


def _due() -> bool:
    return models.Connection.objects.filter(due_at__lt=FAR).exists()


@pytest.mark.sample(4)
@pytest.mark.parametrize("how", list(CHANGES))
def test_a_change_makes_the_cluster_due(resting: models.Pool, how: str) -> None:
    CHANGES[how](resting)
    assert _due()


def test_one_that_is_taken_back_does_not(resting: models.Pool) -> None:
    with transaction.atomic():
        CHANGES["add"](resting)
        transaction.set_rollback(True)
    assert not _due()


def test_what_a_pass_changes_does_not(resting: models.Pool) -> None:
    pool_sync.remove_pool(resting, author=events.Author(actor="cluster c", source="cluster"))
    assert not _due()


def test_pools_of_other_addresses_do_not() -> None:
    factories.reserve(_rests("10.0.0.0/24"), "10.0.0.0-10.0.0.9")
    assert not _due()
