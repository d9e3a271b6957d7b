"""IPPools of an observed cluster: what is recorded, and what is true of it."""

from __future__ import annotations

from typing import Any

import pytest

from claims.core.entries import EntrySpec
from claims.models import Entry, EntryEvent, IPPool, Network
from claims.networks import pools
from pools.core import errors
from pools.models import Block, Finding, ManagedResource
from tests.claims import worlds
from tests.claims.ippools.fleet import Fleet
from tests.edges.api import Api
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
    fleet.follow("prod", {A: ["10.0.0.5/24"], B: ["10.0.0.6/24"]})
    Entry.objects.filter(mac=A).update(vm="web", namespace="shop")
    before = EntryEvent.objects.count()
    fleet.follow("prod", {A: ["10.0.0.5/24"], C: ["10.0.0.7/24"]})
    assert fleet.entries() == {A: ["10.0.0.5/24"], C: ["10.0.0.7/24"]}
    assert Entry.objects.get(mac=A).vm == "web"
    assert EntryEvent.objects.count() == before + 2


def test_bad_entries_are_told_and_the_others_taken_in(fleet: Fleet) -> None:
    fleet.follow("prod", {A: ["10.0.0.0/24"], "nonsense": ["10.0.0.6/24"], C: ["10.0.0.7/24"]})
    assert fleet.entries() == {C: ["10.0.0.7/24"]}
    ippool = fleet.ippool()
    assert {problem["mac"]: problem["code"] for problem in ippool.problems} == {
        A: "network_address_not_host",
        "nonsense": "mac_syntax",
    }
    assert ippool.conditions[0]["reason"] == "UnusableEntries"
    assert fleet.findings() == [("ippool_unusable_entries", "prod")]


def test_macs_that_are_equal_after_normalising_are_duplicates(fleet: Fleet) -> None:
    fleet.follow("prod", {A: ["10.0.0.5/24"], A.upper(): ["10.0.0.6/24"]})
    assert Entry.objects.filter(mac=A).count() == 2
    assert fleet.ippool().conditions[1]["message"] == f"MAC address {A} appears 2 times"
    assert fleet.findings() == [("ippool_duplicates", "prod")]


@pytest.mark.exhaustive
def test_what_is_no_entry_is_no_duplicate_of_the_conditions(fleet: Fleet) -> None:
    """A finding never says duplicates where the condition beside it says that there are none."""
    fleet.follow("prod", {A: ["10.0.0.1/24"], "0a:58:0a:00:00:01": ["10.0.0.6/24"]})
    success, macs, ips = fleet.ippool().conditions
    assert (success["status"], macs["status"], ips["status"]) == ("True", "False", "False")
    (finding,) = Finding.objects.all()
    assert (finding.code, finding.details) == ("ippool_conflicts", {"macs": 1, "ips": 1})
    fleet.follow("prod", {A: ["10.0.0.1/24"], A.upper(): ["10.0.0.6/24"]})
    success, macs, ips = fleet.ippool().conditions
    assert (success["status"], macs["status"], ips["status"]) == ("False", "True", "False")
    details = {row.code: row.details for row in Finding.objects.all()}
    assert details == {
        "ippool_duplicates": {"macs": 1, "ips": 0},
        "ippool_conflicts": {"macs": 0, "ips": 1},
    }


def test_a_network_that_nobody_saw(fleet: Fleet) -> None:
    fleet.follow("prod", {A: ["10.9.0.5/24"]}, network="later")
    assert fleet.findings() == [("network_unknown", "prod")]
    assert fleet.entries() == {A: ["10.9.0.5/24"]}


@pytest.mark.exhaustive
def test_another_network_name_moves_it(fleet: Fleet) -> None:
    fleet.follow("prod", {A: ["10.0.0.5/24"]})
    fleet.follow("prod", {A: ["10.0.0.5/24"]}, network="later")
    assert fleet.ippool().network.name == "later"
    assert fleet.entries() == {A: ["10.0.0.5/24"]}
    assert not Block.objects.filter(state="held").exists()


@pytest.mark.exhaustive
def test_one_that_is_gone_keeps_its_addresses_until_somebody_deletes_it(
    fleet: Fleet, clock: Clock
) -> None:
    fleet.follow("prod", {A: ["10.0.0.5/24"]})
    fleet.server.remove("ippools", "prod")
    fleet.counted()
    assert fleet.ippool().gone_at is None
    clock.advance(3600)
    fleet.settled()
    ippool = fleet.ippool()
    assert ippool.gone_at is not None
    assert fleet.entries() == {A: ["10.0.0.5/24"]}
    assert ("ippool_gone", "prod") in fleet.findings()
    fleet.follow("again", {B: ["10.0.0.6/24"]})
    (again,) = IPPool.objects.all()
    assert (again.pk, again.name, again.gone_at) == (ippool.pk, "again", None)
    assert fleet.entries("again") == {B: ["10.0.0.6/24"]}


@pytest.mark.exhaustive
def test_one_that_was_made_here_follows_its_object_from_then_on(fleet: Fleet) -> None:
    ippool = fleet.make("prod", EntrySpec(A, ("10.0.0.5/24",), "web", "shop"))
    fleet.settled()
    fleet.follow("prod", {A: ["10.0.0.5/24"]})
    ippool.refresh_from_db()
    assert ippool.follows_cluster
    assert Entry.objects.get().vm == "web"
    with pytest.raises(errors.ClusterDecides):
        fleet.add(ippool, EntrySpec(B, ("10.0.0.6/24",)))


@pytest.mark.exhaustive
def test_a_subnet_that_becomes_known_is_thought_of(fleet: Fleet) -> None:
    fleet.follow("prod", {A: ["10.0.0.5/24"], B: ["10.0.9.6/24"]})
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


# --- What conditions and findings say of an IPPool is true of all that its object has -------------
@pytest.mark.exhaustive
@pytest.mark.parametrize("other", ["10.0.0.5/32", "10.0.0.5/16"])
def test_one_address_with_two_prefix_lengths_is_a_duplicate(fleet: Fleet, other: str) -> None:
    fleet.manage(ManagedResource.IPPOOL_STATUS)
    fleet.follow("prod", {A: ["10.0.0.5/24"], B: [other], C: ["10.0.0.6/24"]})
    success, macs, ips = fleet.ippool().conditions
    assert (success["status"], macs["status"], ips["status"]) == ("False", "False", "True")
    assert ips["message"] == f"IP address 10.0.0.5 appears for MAC addresses {A} and {B}"
    assert fleet.conditions()["DuplicateIPAddresses"] == "True"
    fleet.follow("prod", {A: ["10.0.0.5/24"], B: ["10.0.0.7/32"], C: ["10.0.0.6/24"]})
    assert fleet.conditions()["DuplicateIPAddresses"] == "False"


def test_the_mac_of_an_entry_that_cannot_be_used_counts(fleet: Fleet) -> None:
    fleet.follow("prod", {A: ["10.0.0.5/24"], "02-00-00-00-00-0A": ["10.0.0.7/32"]})
    assert fleet.ippool().conditions[1]["message"] == f"MAC address {A} appears 2 times"


def test_two_unusable_entries_with_one_ipv6_address(fleet: Fleet) -> None:
    Network.objects.update(subnets=["10.0.0.0/24", "fd00::/64"])
    fleet.follow("prod", {A: ["fd00::5/128"], B: ["fd00:0:0::0005/128"]})
    _, _, ips = fleet.ippool().conditions
    assert ips["message"] == f"IP address fd00::5 appears for MAC addresses {A} and {B}"


@pytest.mark.exhaustive
def test_a_second_ippool_of_a_network_has_a_finding_and_a_status(fleet: Fleet) -> None:
    fleet.manage(ManagedResource.IPPOOL_STATUS)
    fleet.put("prod", {A: ["10.0.0.5/24"]})
    fleet.counted()
    fleet.put("again", {B: ["10.0.0.6/24"]})
    fleet.passed()
    (finding,) = Finding.objects.filter(code="network_has_ippool")
    assert finding.subject == "again"
    assert "already has an IPPool: prod" in finding.message
    (condition,) = fleet.there("again")["status"]["conditions"]
    assert (condition["status"], condition["reason"]) == ("False", "NetworkHasIPPool")
    fleet.passed()
    assert fleet.there("again")["status"]["conditions"] == [condition]  # nothing is written again
    assert fleet.entries() == {A: ["10.0.0.5/24"]}


def test_two_addresses_of_a_family(fleet: Fleet) -> None:
    """Taken in from a cluster, with a finding; refused wherever somebody writes them here."""
    fleet.follow("prod", {A: ["10.0.0.5/24", "10.0.0.6/24", "10.0.0.7/24"], B: ["10.0.0.8/24"]})
    assert len(fleet.entries()[A]) == 3
    (finding,) = Finding.objects.filter(code="ippool_one_per_family")
    assert f"{A} 10.0.0.5/24, 10.0.0.6/24, 10.0.0.7/24" in finding.message
    assert "1 entry of the IPPool prod has" in finding.message


@pytest.mark.parametrize("form", ["one", "list", "map", "change"])
def test_rest_refuses_two_addresses_of_a_family(form: str) -> None:
    ippool = worlds.ippool(worlds.network())
    entry = worlds.entry(ippool, B, "10.0.0.8/24")
    values: Any = {"mac": A, "ips": ["10.0.0.5/24", "10.0.0.6/24"]}
    path, api = f"ippools/{ippool.pk}/entries/", Api()
    answer = {
        "one": lambda: api("POST", path, values),
        "list": lambda: api("POST", path, [values]),
        "map": lambda: api("PUT", path, {"entries": {A: values["ips"]}}, If_Match="*"),
        "change": lambda: api("PATCH", f"{path}{entry.pk}/", {"ips": values["ips"]}),
    }[form]()
    assert answer.status_code == 400, answer.content
    (problem,) = answer.json()["errors"]
    assert problem["code"] == "one_per_family"
    assert Entry.objects.get().ips == ["10.0.0.8/24"]


@pytest.mark.exhaustive
def test_a_note_of_an_entry_from_a_cluster_can_be_changed(fleet: Fleet) -> None:
    fleet.manage(ManagedResource.IPPOOL_STATUS)
    fleet.follow("prod", {A: ["10.0.0.5/24", "10.0.0.6/24"]})
    entry = Entry.objects.get()
    answer = Api()("PATCH", f"ippools/{entry.ippool_id}/entries/{entry.pk}/", {"note": "old"})
    assert answer.status_code == 200, answer.content
    fleet.settled()
    assert fleet.written() == {A: ["10.0.0.5/24", "10.0.0.6/24"]}
