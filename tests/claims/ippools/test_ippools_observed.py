"""In an observed cluster the register follows its IPPools, and writes nothing to them."""

from __future__ import annotations

import pytest

from claims.core.entries import EntrySpec
from claims.models import Entry, EntryEvent, IPPool
from claims.networks import pools
from pools.core import errors
from pools.models import Block, Finding
from tests.claims import worlds
from tests.claims.ippools.fleet import Fleet
from tests.factories import BY
from tests.pools.conftest import Clock

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


def test_an_ippool_is_taken_in(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.0.0.5/24"], "02-00-00-00-00-0B": ["10.0.0.6/24"]})
    assert fleet.counted()["written"] == 0
    assert fleet.entries() == {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]}
    ippool = fleet.ippool()
    assert (ippool.follows_cluster, ippool.network) == (True, fleet.network)
    assert {entry.source for entry in Entry.objects.all()} == {"cluster"}
    assert [condition["status"] for condition in ippool.conditions] == ["True", "False", "False"]
    assert Block.objects.filter(state="held").count() == 2
    with pytest.raises(errors.ClusterDecides):
        fleet.add(ippool, EntrySpec(C, ("10.0.0.7/24",)))


@pytest.mark.exhaustive
def test_what_changes_there_changes_here_and_nothing_else(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]})
    fleet.settled()
    Entry.objects.filter(mac=A).update(vm="web", namespace="shop")
    before = EntryEvent.objects.count()
    fleet.put("prod", {A: ["10.0.0.5/24"], C: ["10.0.0.7/24"]})
    fleet.settled()
    assert fleet.entries() == {A: ["10.0.0.5/24"], C: ["10.0.0.7/24"]}
    assert Entry.objects.get(mac=A).vm == "web"
    assert EntryEvent.objects.count() == before + 2


def test_bad_entries_are_told_and_the_others_taken_in(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.0.0.0/24"], "nonsense": ["10.0.0.6/24"], C: ["10.0.0.7/24"]})
    fleet.settled()
    assert fleet.entries() == {C: ["10.0.0.7/24"]}
    ippool = fleet.ippool()
    assert {problem["mac"]: problem["code"] for problem in ippool.problems} == {
        A: "network_address_not_host",
        "nonsense": "mac_syntax",
    }
    assert ippool.conditions[0]["reason"] == "UnusableEntries"
    assert fleet.findings() == [("ippool_unusable_entries", "prod")]


def test_macs_that_are_equal_after_normalising_are_duplicates(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.0.0.5/24"], A.upper(): ["10.0.0.6/24"]})
    fleet.settled()
    assert Entry.objects.filter(mac=A).count() == 2
    assert fleet.ippool().conditions[1]["message"] == f"MAC address {A} appears 2 times"
    assert fleet.findings() == [("ippool_duplicates", "prod")]


@pytest.mark.exhaustive
def test_what_is_no_entry_is_no_duplicate_of_the_conditions(fleet: Fleet) -> None:
    """A finding never says duplicates where the condition beside it says that there are none."""
    fleet.put("prod", {A: ["10.0.0.1/24"], "0a:58:0a:00:00:01": ["10.0.0.6/24"]})
    fleet.settled()
    success, macs, ips = fleet.ippool().conditions
    assert (success["status"], macs["status"], ips["status"]) == ("True", "False", "False")
    (finding,) = Finding.objects.all()
    assert (finding.code, finding.details) == ("ippool_conflicts", {"macs": 1, "ips": 1})
    fleet.put("prod", {A: ["10.0.0.1/24"], A.upper(): ["10.0.0.6/24"]})
    fleet.settled()
    success, macs, ips = fleet.ippool().conditions
    assert (success["status"], macs["status"], ips["status"]) == ("False", "True", "False")
    details = {row.code: row.details for row in Finding.objects.all()}
    assert details == {
        "ippool_duplicates": {"macs": 1, "ips": 0},
        "ippool_conflicts": {"macs": 0, "ips": 1},
    }


def test_a_network_that_nobody_saw(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.9.0.5/24"]}, network="later")
    fleet.settled()
    assert fleet.findings() == [("network_unknown", "prod")]
    assert fleet.entries() == {A: ["10.9.0.5/24"]}


@pytest.mark.exhaustive
def test_another_network_name_moves_it(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.0.0.5/24"]})
    fleet.settled()
    fleet.put("prod", {A: ["10.0.0.5/24"]}, network="later")
    fleet.settled()
    assert fleet.ippool().network.name == "later"
    assert fleet.entries() == {A: ["10.0.0.5/24"]}
    assert not Block.objects.filter(state="held").exists()


@pytest.mark.exhaustive
def test_one_that_is_gone_keeps_its_addresses_until_somebody_deletes_it(
    fleet: Fleet, clock: Clock
) -> None:
    fleet.put("prod", {A: ["10.0.0.5/24"]})
    fleet.settled()
    fleet.server.remove("ippools", "prod")
    fleet.counted()
    assert fleet.ippool().gone_at is None
    clock.advance(3600)
    fleet.settled()
    ippool = fleet.ippool()
    assert ippool.gone_at is not None
    assert fleet.entries() == {A: ["10.0.0.5/24"]}
    assert ("ippool_gone", "prod") in fleet.findings()
    fleet.put("again", {B: ["10.0.0.6/24"]})
    fleet.settled()
    (again,) = IPPool.objects.all()
    assert (again.pk, again.name, again.gone_at) == (ippool.pk, "again", None)
    assert fleet.entries("again") == {B: ["10.0.0.6/24"]}


@pytest.mark.exhaustive
def test_one_that_was_made_here_follows_its_object_from_then_on(fleet: Fleet) -> None:
    ippool = fleet.make("prod", EntrySpec(A, ("10.0.0.5/24",), "web", "shop"))
    fleet.settled()
    fleet.put("prod", {A: ["10.0.0.5/24"]})
    fleet.settled()
    ippool.refresh_from_db()
    assert ippool.follows_cluster
    assert Entry.objects.get().vm == "web"
    with pytest.raises(errors.ClusterDecides):
        fleet.add(ippool, EntrySpec(B, ("10.0.0.6/24",)))


@pytest.mark.exhaustive
def test_a_subnet_that_becomes_known_is_thought_of(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.0.0.5/24"], B: ["10.0.9.6/24"]})
    fleet.settled()
    assert fleet.entries() == {A: ["10.0.0.5/24"]}
    type(fleet.network).objects.filter(pk=fleet.network.pk).update(
        subnets=["10.0.0.0/24", "10.0.9.0/24"]
    )
    fleet.settled()
    assert set(fleet.entries()) == {A, B}
    assert fleet.ippool().problems == []


def test_entries_that_were_written_before_the_subnets_were_known(fleet: Fleet) -> None:
    network = worlds.network("later", subnets=(), of=fleet.cluster)
    fleet.make(
        "later", EntrySpec(A, ("10.9.0.5/24",)), EntrySpec(B, ("192.0.2.6/24",)), network=network
    )
    fleet.counted()
    assert ("ippool_outside_network", "later") not in fleet.findings()
    network.subnets = ["10.9.0.0/24"]
    network.save()
    pools.sync_pool(network, author=BY)
    fleet.counted()
    finding = Finding.objects.get(code="ippool_outside_network", subject="later")
    assert finding.details == {"entries": [f"{B} 192.0.2.6"]}


def test_an_object_that_cannot_be_understood_fails_alone(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.0.0.5/24"]})
    fleet.put("zero", {A: ["10.0.0.5/24"]}, network="a\u202eb")
    fleet.passed()
    assert fleet.problems() == {"zero": "invisible_character"}
    assert fleet.entries() == {A: ["10.0.0.5/24"]}
