"""A pod that asked for addresses and got others says that OVN-Kubernetes ignores requests."""

import json
from typing import Any

import pytest

from claims.core.workloads import network_selection
from claims.core.workloads.network_selection import DEFAULT_NETWORK
from pools.models import Finding
from tests.claims.workloads import kubevirt

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
        (
            OTHER_MAC,
            ["10.0.0.5/24"],
            ["10.0.0.5/24"],
            (["10.0.0.5", OTHER_MAC], ["10.0.0.5", kubevirt.MAC]),
        ),
        (
            kubevirt.MAC,
            ["10.0.0.5/24"],
            ["10.0.0.3/24"],
            (["10.0.0.5", kubevirt.MAC], ["10.0.0.3", kubevirt.MAC]),
        ),
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
    for name, got in (
        ("virt-launcher-vm1-a", "10.0.0.3/24"),
        ("virt-launcher-vm1-b", "10.0.0.5/24"),
    ):
        networks = kubevirt.attachment(got)
        texts = annotations("10.0.0.5/24") | {"k8s.ovn.org/pod-networks": json.dumps(networks)}
        metadata = {
            "labels": {"kubevirt.io": "virt-launcher"},
            "ownerReferences": [kubevirt.owner(vmi)],
            "annotations": texts,
        }
        cluster.pod(name, metadata=metadata)
    cluster.passed()
    finding = Finding.objects.get(code="requested_addresses_ignored")
    assert finding.subject.endswith("/virt-launcher-vm1-a")
    assert "enable-preconfigured-udn-addresses" in finding.message
    assert "10.0.0.5" in finding.message
    assert "10.0.0.3" in finding.message
