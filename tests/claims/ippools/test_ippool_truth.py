"""What conditions and findings say of an IPPool is true of all that its object has."""

from typing import Any

import pytest

from claims.models import Entry, Network
from pools.models import Finding, ManagedResource
from tests.claims import worlds
from tests.claims.ippools.fleet import Fleet
from tests.edges.api import Api

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"


@pytest.mark.exhaustive
@pytest.mark.parametrize("other", ["10.0.0.5/32", "10.0.0.5/16"])
def test_one_address_with_two_prefix_lengths_is_a_duplicate(fleet: Fleet, other: str) -> None:
    fleet.manage(ManagedResource.IPPOOL_STATUS)
    fleet.put("prod", {A: ["10.0.0.5/24"], B: [other], C: ["10.0.0.6/24"]})
    fleet.settled()
    success, macs, ips = fleet.ippool().conditions
    assert (success["status"], macs["status"], ips["status"]) == ("False", "False", "True")
    assert ips["message"] == f"IP address 10.0.0.5 appears for MAC addresses {A} and {B}"
    assert fleet.conditions()["DuplicateIPAddresses"] == "True"
    fleet.put("prod", {A: ["10.0.0.5/24"], B: ["10.0.0.7/32"], C: ["10.0.0.6/24"]})
    fleet.settled()
    assert fleet.conditions()["DuplicateIPAddresses"] == "False"


def test_the_mac_of_an_entry_that_cannot_be_used_counts(fleet: Fleet) -> None:
    fleet.put("prod", {A: ["10.0.0.5/24"], "02-00-00-00-00-0A": ["10.0.0.7/32"]})
    fleet.settled()
    assert fleet.ippool().conditions[1]["message"] == f"MAC address {A} appears 2 times"


def test_two_unusable_entries_with_one_ipv6_address(fleet: Fleet) -> None:
    Network.objects.update(subnets=["10.0.0.0/24", "fd00::/64"])
    fleet.put("prod", {A: ["fd00::5/128"], B: ["fd00:0:0::0005/128"]})
    fleet.settled()
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
    fleet.put("prod", {A: ["10.0.0.5/24", "10.0.0.6/24", "10.0.0.7/24"], B: ["10.0.0.8/24"]})
    fleet.settled()
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
    fleet.put("prod", {A: ["10.0.0.5/24", "10.0.0.6/24"]})
    fleet.settled()
    entry = Entry.objects.get()
    answer = Api()("PATCH", f"ippools/{entry.ippool_id}/entries/{entry.pk}/", {"note": "old"})
    assert answer.status_code == 200, answer.content
    fleet.settled()
    assert fleet.written() == {A: ["10.0.0.5/24", "10.0.0.6/24"]}
