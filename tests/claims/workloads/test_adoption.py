"""Workloads that are adopted, and requests that a cluster ignores."""

import json
from typing import Any

import pytest

from claims.api.workloads import AdoptionPlanSerializer
from claims.core.workloads import network_selection
from claims.core.workloads.network_selection import DEFAULT_NETWORK
from claims.models import Entry, IPPool, Network
from claims.workloads import adoption, results
from pools.core import errors
from pools.models import Finding
from tests.claims import worlds
from tests.claims.workloads import kubevirt

A, B, C = "02:00:00:00:00:0a", "02:00:00:00:00:0b", "02:00:00:00:00:0c"
FIVE, SIX = "10.0.0.5/24", "10.0.0.6/24"


def actions(plan: adoption.Plan) -> list[str]:
    return [step.action for step in plan.steps]


def entry_rows(network: Network) -> list[tuple[str, list[str], str, str]]:
    rows = Entry.objects.filter(ippool__network=network).order_by("mac", "id")
    return [(row.mac, row.ips, row.vm, row.source) for row in rows]


def test_what_is_unknown_makes_the_ippool_and_its_entries() -> None:
    network = worlds.network(object_name="blue")
    worlds.workload(network, "db", A, FIVE)
    worlds.workload(network, "web", B, SIX, kind="pod")
    planned = adoption.plan(network, result="unknown")
    assert (planned.ippool, planned.makes_ippool, actions(planned)) == ("blue", True, ["create"] * 2)  # fmt: skip
    assert not IPPool.objects.exists()
    done = adoption.adopt(network, result="unknown", author=worlds.BY)
    assert AdoptionPlanSerializer(done).data == AdoptionPlanSerializer(planned).data
    assert entry_rows(network) == [(A, [FIVE], "db", "adopted"), (B, [SIX], "", "adopted")]
    assert results.result_counts(network.pk)["matching"] == 2
    assert adoption.adopt(network, result="unknown", author=worlds.BY).steps == []
    assert IPPool.objects.get().name == "blue"


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("entry", "runs", "remaining"),
    [
        ((A, FIVE, "db"), (A, SIX), [(A, [SIX], "db", "adopted")]),
        ((A, FIVE, "db"), (B, SIX), [(B, [SIX], "db", "adopted")]),
        ((A, FIVE, ""), (B, FIVE), [(B, [FIVE], "db", "adopted")]),
        ((A, FIVE, "other"), (A, FIVE), [(A, [FIVE], "db", "adopted")]),
        ((A, FIVE, "other"), (B, FIVE), [(A, [FIVE], "other", "hand"), (B, [FIVE], "db", "adopted")]),
    ],
    ids=["address", "vm", "mac", "other-vm", "address-of-another"],
)  # fmt: skip
def test_what_differs(
    entry: tuple[str, str, str], runs: tuple[str, str], remaining: object, network: Network
) -> None:
    mac, ip, vm = entry
    worlds.entry(worlds.ippool(network), mac, ip, vm=vm, namespace="blue" if vm else "")
    worlds.workload(network, "db", *runs)
    assert results.result_counts(network.pk)["different"] == 1
    adoption.adopt(network, result="different", author=worlds.BY)
    assert entry_rows(network) == remaining


def test_an_entry_follows_one_workload_only(network: Network) -> None:
    worlds.entry(worlds.ippool(network), A, FIVE, vm="db", namespace="blue")
    for mac, ip, interface in ((B, FIVE, "one"), (C, SIX, "two")):
        worlds.workload(network, "db", mac, ip, interface=interface)
    assert actions(adoption.adopt(network, result="different", author=worlds.BY)) == ["change", "create"]  # fmt: skip
    assert [item[0] for item in entry_rows(network)] == [B, C]


@pytest.mark.parametrize(
    ("mac", "ips", "code"),
    [(None, [FIVE], "nothing_to_adopt"), (A, [], "nothing_to_adopt"), (A, ["10.9.0.5/24"], "outside_subnet")],
)  # fmt: skip
def test_what_cannot_be_adopted_is_told(mac: str, ips: list[str], code: str) -> None:
    network = worlds.network()
    worlds.workload(network, "db", mac, *ips)
    (step,) = adoption.adopt(network, result="unknown", author=worlds.BY).steps
    assert (step.action, step.code) == ("refuse", code)
    assert not IPPool.objects.exists()


def test_a_claim_alone_makes_an_entry(network: Network) -> None:
    worlds.claim(network, "db", SIX)
    row = worlds.workload(network, "db", A, FIVE)
    assert actions(adoption.adopt(network, ids=[row.pk], author=worlds.BY)) == ["create"]


def test_workloads_of_another_network() -> None:
    row = worlds.workload(worlds.network(), "db", A, FIVE)
    other = worlds.network("other")
    with pytest.raises(errors.NotFound):
        adoption.adopt(other, ids=[row.pk], author=worlds.BY)


# --- A pod that asked for addresses and got others says that OVN-Kubernetes ignores requests ------
ELEMENT = {"name": "default", "namespace": "ovn-kubernetes"}
OTHER_MAC = "02:00:00:00:00:99"


def annotations(*ips: str, mac: str = "") -> dict[str, str]:
    requested = {"ips": list(ips), **({"mac": mac} if mac else {})}
    return {DEFAULT_NETWORK: json.dumps([ELEMENT | requested])}


@pytest.mark.parametrize(
    ("requested", "got", "ignored"),
    [
        (["10.0.0.5/24"], ["10.0.0.3/24"], True),
        (["10.0.0.5/24"], ["10.0.0.5/24"], False),
        (["10.0.0.5/24", "2001:db8:0:0::5/64"], ["2001:db8::5/64", "10.0.0.5/24"], False),
        (["10.0.0.5/24", "2001:db8::5/64"], ["10.0.0.5/24", "2001:db8::9/64"], True),
        ([], ["10.0.0.3/24"], False),
        (["10.0.0.5/24"], [], False),
        (["10.0.0.5/24"], [7], False),
    ],
)
def test_request_and_answer(requested: list[str], got: list[Any], ignored: bool) -> None:
    networks = json.dumps(kubevirt.attachment(*got))
    result = network_selection.ignored_request(annotations(*requested), networks)
    assert (result is not None) == ignored


@pytest.mark.parametrize(
    ("requested", "ips", "got", "ignored"),
    [
        (kubevirt.MAC, [], [], None),
        (kubevirt.MAC.upper().replace(":", "-"), [], ["10.0.0.3/24"], None),
        (OTHER_MAC, [], [], ([OTHER_MAC], [kubevirt.MAC])),
        (OTHER_MAC, [], ["10.0.0.3/24"], ([OTHER_MAC], [kubevirt.MAC])),
        (OTHER_MAC, [FIVE], [FIVE], (["10.0.0.5", OTHER_MAC], ["10.0.0.5", kubevirt.MAC])),
        (kubevirt.MAC, [FIVE], [SIX], (["10.0.0.5", kubevirt.MAC], ["10.0.0.6", kubevirt.MAC])),
    ],
)
def test_a_mac_that_was_asked_for(
    requested: str, ips: list[str], got: list[str], ignored: Any
) -> None:
    networks = kubevirt.attachment(*got)
    annotated = annotations(*ips, mac=requested)
    assert network_selection.ignored_request(annotated, json.dumps(networks)) == ignored
    for value in (None, "", 7, "no MAC"):
        networks["default/prod"]["mac_address"] = value
        result = network_selection.ignored_request(annotated, json.dumps(networks))
        assert result is None or kubevirt.MAC not in result[1]


@pytest.mark.parametrize(
    "text", [None, "", "[", "[]", "{}", '{"a": 1}', '{"a/b": {"role": "primary"}}']
)
def test_what_cannot_be_read_says_nothing(text: object) -> None:
    assert network_selection.ignored_request(annotations("10.0.0.5/24"), text) is None
    assert network_selection.ignored_request({}, text) is None


def test_the_finding_names_the_pod_and_the_option(cluster: Any) -> None:
    vm = cluster.vm("vm1")
    vmi = cluster.vmi(vm)
    for name, got in (("virt-launcher-vm1-a", "10.0.0.3/24"), ("virt-launcher-vm1-b", FIVE)):
        networks = kubevirt.attachment(got)
        texts = annotations(FIVE) | {"k8s.ovn.org/pod-networks": json.dumps(networks)}
        owners = {"ownerReferences": [kubevirt.owner(vmi)], "annotations": texts}
        metadata = {"labels": {"kubevirt.io": "virt-launcher"}} | owners
        cluster.pod(name, metadata=metadata)
    cluster.passed()
    finding = Finding.objects.get(code="requested_addresses_ignored")
    assert finding.subject.endswith("/virt-launcher-vm1-a")
    assert "enable-preconfigured-udn-addresses" in finding.message
    assert "10.0.0.5" in finding.message
    assert "10.0.0.3" in finding.message
