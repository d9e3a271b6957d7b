"""With the managed resource `ippool-status` the register writes its own IPPools, and the status of all."""

from __future__ import annotations

import pytest

from claims.core.entries import EntrySpec
from claims.entries import entries, ippools
from claims.models import NAD, Entry
from pools.clusters import drift
from pools.core import errors
from pools.models import Finding, ManagedResource
from tests.claims import worlds
from tests.claims.ippools.fleet import Fleet, manifest
from tests.pools.conftest import Clock

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
CLEAN = {"Success": "True", "DuplicateMACAddresses": "False", "DuplicateIPAddresses": "False"}


@pytest.fixture
def managed(fleet: Fleet) -> Fleet:
    fleet.manage(ManagedResource.IPPOOL_STATUS)
    return fleet


def test_an_ippool_of_the_register_is_made_and_told_of(managed: Fleet) -> None:
    managed.make("prod", EntrySpec(A, ("10.0.0.5/24",)), EntrySpec(B, ("10.0.0.6/24",)))
    NAD.objects.create(network=managed.network, namespace="shop", name="n")
    managed.settled()
    assert managed.written() == {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]}
    assert managed.conditions() == CLEAN
    status = managed.there()["status"]
    assert status["associated-nads"] == [{"namespace": "shop", "name": "n"}]
    assert {condition["observedGeneration"] for condition in status["conditions"]} == {1}
    assert managed.drift() == []


@pytest.mark.exhaustive
def test_changes_here_arrive_there(managed: Fleet) -> None:
    ippool = managed.make("prod", EntrySpec(A, ("10.0.0.5/24",)), EntrySpec(B, ("10.0.0.6/24",)))
    managed.settled()
    entries.delete([Entry.objects.get(mac=A).pk], author=worlds.BY)
    managed.add(ippool, EntrySpec(B, ("10.0.0.7/24",)))
    managed.settled()
    assert managed.written() == {B: ["10.0.0.6/24", "10.0.0.7/24"]}
    assert managed.conditions()["DuplicateMACAddresses"] == "True"
    entries.delete(list(Entry.objects.values_list("pk", flat=True)), author=worlds.BY)
    managed.settled()
    assert managed.written() == {}
    assert managed.conditions() == CLEAN


@pytest.mark.exhaustive
def test_a_time_moves_only_with_its_status(managed: Fleet) -> None:
    ippool = managed.make("prod", EntrySpec(A, ("10.0.0.5/24",)))
    managed.settled()
    before = managed.there()["status"]["conditions"]
    managed.add(ippool, EntrySpec(B, ("10.0.0.6/24",)))
    managed.settled()
    after = managed.there()["status"]["conditions"]
    times = [[item["lastTransitionTime"] for item in item] for item in (before, after)]
    assert times[0] == times[1]


@pytest.mark.exhaustive
def test_one_that_is_followed_gets_its_status_only(managed: Fleet) -> None:
    managed.follow("prod", {A: ["10.0.0.5/24"], B.upper(): ["10.0.0.5/24"], "x": ["10.0.0.6/24"]})
    assert set(managed.written()) == {A, B.upper(), "x"}
    assert managed.conditions() == {
        "Success": "False",
        "DuplicateMACAddresses": "False",
        "DuplicateIPAddresses": "True",
    }
    success = managed.there()["status"]["conditions"][0]
    assert success["reason"] == "DuplicatesExist"
    assert "1 entry cannot be used; x: " in success["message"]
    assert managed.ippool().follows_cluster


@pytest.mark.exhaustive
def test_it_becomes_the_registers_with_the_first_change_here(managed: Fleet) -> None:
    managed.follow("prod", {A: ["10.0.0.5/24"], B.upper(): ["10.0.0.6/24"]})
    ippool = managed.ippool()
    managed.add(ippool, EntrySpec(C, ("10.0.0.7/24",)))
    assert not managed.ippool().follows_cluster
    managed.settled()
    # In the object's own words, where it has the MAC already.
    assert managed.written() == {A: ["10.0.0.5/24"], B.upper(): ["10.0.0.6/24"], C: ["10.0.0.7/24"]}


@pytest.mark.exhaustive
def test_what_others_own_is_not_taken_from_them(managed: Fleet) -> None:
    managed.follow("prod", {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]})
    entries.change(Entry.objects.get(mac=A).pk, EntrySpec(A, ("10.0.0.9/24",)), author=worlds.BY)
    entries.delete([Entry.objects.get(mac=B).pk], author=worlds.BY)
    managed.passed()
    managed.passed()
    assert managed.written() == {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]}
    assert managed.drift() == [("prod", f"spec.entries.{A}")]
    finding = Finding.objects.get(code="more_in_cluster")
    assert finding.details["macs"] == [B]
    assert managed.entries() == {A: ["10.0.0.9/24"]}


@pytest.mark.exhaustive
def test_one_that_was_deleted_here_is_not_taken_in_again(managed: Fleet) -> None:
    ippool = managed.make("prod", EntrySpec(A, ("10.0.0.5/24",)))
    managed.settled()
    ippools.delete(ippool.pk, author=worlds.BY)
    managed.settled()
    assert managed.written() == {A: ["10.0.0.5/24"]}
    assert managed.findings() == [("ippool_not_in_register", "prod")]


@pytest.mark.exhaustive
def test_one_that_was_deleted_there_is_made_again(managed: Fleet, clock: Clock) -> None:
    managed.make("prod", EntrySpec(A, ("10.0.0.5/24",)))
    managed.settled()
    managed.server.remove("ippools", "prod")
    managed.counted()
    clock.advance(3600)
    managed.settled()
    assert managed.written() == {A: ["10.0.0.5/24"]}


@pytest.mark.exhaustive
def test_without_the_managed_resource_the_object_is_right_again(managed: Fleet) -> None:
    managed.make("prod", EntrySpec(A, ("10.0.0.5/24",)))
    managed.settled()
    managed.manage()
    managed.server.put(manifest("prod", {B: ["10.0.0.6/24"]}), manager="kubectl")
    managed.settled()
    assert managed.ippool().follows_cluster
    assert B in managed.entries()


def _of(fleet: Fleet) -> drift.ClusterObject:
    return drift.ClusterObject(fleet.cluster, "IPPool", "prod")


@pytest.mark.exhaustive
def test_what_is_in_the_cluster_is_adopted(managed: Fleet) -> None:
    managed.follow("prod", {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]})
    entries.change(Entry.objects.get(mac=A).pk, EntrySpec(A, ("10.0.0.9/24",)), author=worlds.BY)
    managed.passed()
    adopted = drift.adopt(_of(managed), author=worlds.BY)
    assert adopted == managed.ippool().pk
    assert managed.entries() == {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]}
    assert not managed.ippool().follows_cluster
    managed.settled()
    assert managed.drift() == []


@pytest.mark.exhaustive
def test_one_that_followed_its_object_becomes_the_registers(managed: Fleet) -> None:
    managed.follow("prod", {A: ["10.0.0.5/24"]})
    drift.apply(_of(managed), author=worlds.BY)
    assert not managed.ippool().follows_cluster
    managed.settled()
    assert managed.written() == {A: ["10.0.0.5/24"]}


def test_nothing_is_applied_without_the_managed_resource(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.0.0.5/24"]})
    fleet.passed()
    with pytest.raises(errors.NotManaged):
        drift.apply(_of(fleet), author=worlds.BY)
