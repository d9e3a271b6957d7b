"""Matching, missing, different, unknown: what runs beside what is registered."""

from typing import Any

import pytest

from claims.models import Network
from claims.workloads import results
from pools.models import Cluster, Now, ObservedObject
from tests.claims import worlds

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
FIVE, SIX = "10.0.0.5/24", "10.0.0.6/24"


def compared_rows(network: Network) -> list[tuple[str, set[str]]]:
    """Result and codes of the reasons but duplicates, in the order of the rows."""
    rows = list(results.visible_rows().filter(network=network).order_by(*results.ORDER).values())
    shapes = results.render_rows(rows)
    for shape in shapes:
        differs = {"other_mac", "other_vm", "address_not_running", "address_not_registered"}
        codes = {reason["code"] for reason in shape["reasons"]}
        assert (shape["result"] == "different") == bool(codes & differs)
    result = [
        (shape["result"], {code for reason in shape["reasons"] if not (code := reason["code"]).startswith("duplicate")})
        for shape in shapes
    ]  # fmt: skip
    counted = {
        answer: sum(status == answer for status, _ in result) for answer in results.ComparisonResult
    }
    assert results.result_counts(network.pk) == counted
    return result


def vm(cluster: Cluster, name: str, status: str, namespace: str = "blue") -> None:
    ObservedObject.objects.create(
        cluster=cluster, kind="VirtualMachine", namespace=namespace, name=name, uid=f"vm-{name}",
        resource_version="1", manifest={"status": {"printableStatus": status}},
        first_seen_at=Now(), changed_at=Now(),
    )  # fmt: skip


@pytest.mark.sample(12)
@pytest.mark.parametrize(
    ("entry", "runs", "result", "codes"),
    [
        ({}, (A, FIVE), "matching", set()),
        ({"vm": "db", "namespace": "blue"}, (A, FIVE), "matching", set()),
        ({"vm": "db"}, (A, FIVE), "matching", set()),
        ({}, (A,), "matching", {"no_address_seen"}),
        ({}, (None, FIVE), "matching", {"no_mac_seen"}),
        ({}, (A, SIX), "different", {"address_not_running", "address_not_registered"}),
        ({}, (A, FIVE, SIX), "different", {"address_not_registered"}),
        ({}, (B, FIVE), "different", {"other_mac"}),
        ({"vm": "db", "namespace": "blue"}, (B, SIX), "different", {"other_mac", "address_not_running", "address_not_registered"}),
        ({"vm": "web", "namespace": "blue"}, (A, FIVE), "different", {"other_vm"}),
        ({"vm": "db", "namespace": "red"}, (A, FIVE), "different", {"other_vm"}),
    ],
)  # fmt: skip
def test_an_entry_beside_what_runs(
    entry: dict[str, str], runs: Any, result: str, codes: set[str]
) -> None:
    network = worlds.network()
    worlds.entry(worlds.ippool(network), A, FIVE, **entry)
    worlds.workload(network, "db", *runs)
    assert compared_rows(network) == [(result, codes)]


@pytest.mark.parametrize("ips", [(FIVE, "fd00::5/64"), ("fd00::5/64", "10.0.0.5")])
def test_addresses_are_compared_as_a_set(ips: tuple[str, ...]) -> None:
    network = worlds.network(subnets=("10.0.0.0/24", "fd00::/64"))
    worlds.entry(worlds.ippool(network), A, FIVE, "fd00::5/64")
    worlds.workload(network, "db", A, *ips)
    matches = results.visible_rows().filter(network=network).get()
    assert matches.result == "matching"


def test_nothing_runs() -> None:
    network = worlds.network()
    ippool = worlds.ippool(network)
    for name, status in (("stopped", "Stopped"), ("elsewhere", "Running")):
        vm(network.cluster, name, status)
    for last, name in enumerate(("stopped", "elsewhere", "nobody", "")):
        worlds.entry(ippool, f"02:00:00:00:00:{last:02}", f"10.0.0.{9 + last}/24", vm=name, namespace="blue")  # fmt: skip
    codes = ["vm_stopped", "vm_not_attached", "vm_unknown", "vm_not_named"]
    assert compared_rows(network) == [("missing", {code}) for code in codes]


def test_nothing_is_registered() -> None:
    network, other = worlds.network(), worlds.network("cluster_udn_red", subnets=("10.0.0.0/24",))
    worlds.entry(worlds.ippool(other, "red"), A, FIVE, vm="db", namespace="blue")
    worlds.workload(network, "db", A, FIVE)
    worlds.workload(network, "web", B, SIX, kind="pod")
    assert compared_rows(network) == [("unknown", {"not_registered"})] * 2
    assert compared_rows(other) == [("missing", {"vm_unknown"})]


def test_two_interfaces_of_a_vm_are_told_apart_by_mac() -> None:
    network = worlds.network()
    ippool = worlds.ippool(network)
    for mac, ip in ((A, FIVE), (B, SIX)):
        worlds.entry(ippool, mac, ip, vm="db", namespace="blue")
    worlds.workload(network, "db", A, FIVE, interface="one")
    assert [status for status, _ in compared_rows(network)] == ["matching", "missing"]
    worlds.workload(network, "db", C, SIX, interface="two")
    assert compared_rows(network) == [("matching", set()), ("different", {"other_mac"})]


def test_claims_count_where_no_entry_speaks() -> None:
    network = worlds.network()
    worlds.claim(network, "db", FIVE)
    worlds.claim(network, "web", SIX)
    worlds.claim(network, "asked", ips_requested=["10.0.0.7/24"])
    worlds.claim(network, "empty")
    worlds.workload(network, "db", A, FIVE)
    worlds.workload(network, "asked", C, "10.0.0.8/24")
    codes = {"address_not_running", "address_not_registered"}
    assert compared_rows(network) == [
        ("matching", set()),
        ("missing", {"vm_unknown"}),
        ("different", codes),
    ]
    worlds.entry(worlds.ippool(network), A, SIX, vm="db", namespace="blue")
    assert [status for status, _ in compared_rows(network)] == ["different", "missing", "different"]


def test_an_address_of_a_claim_that_another_runs_with() -> None:
    network = worlds.network()
    worlds.claim(network, "web", FIVE)
    worlds.workload(network, "db", A, FIVE)
    assert compared_rows(network) == [("different", {"other_vm"})]
