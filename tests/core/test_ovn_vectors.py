"""What OVN-Kubernetes keeps, gives and refuses (tests/vectors/ovn_kubernetes.yaml) is what Cadastre computes."""

import json
import pathlib
from ipaddress import ip_interface, ip_network
from typing import Any

import pytest

from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.networks import kept_addresses, nads, static_vms, udn
from claims.core.workloads import attachments
from pools.core.addresses import AddressRange
from pools.platform import documents

FILE = pathlib.Path(__file__).parents[1] / "vectors" / "ovn_kubernetes.yaml"
(DOCUMENT,) = (read.data for read in documents.load_yaml(FILE.read_bytes()))
CODES = {
    "provided IP is already allocated": "unusable_address",
    "provided IP is not in the valid range": "unusable_address",
    "not contained in any known subnet": "outside_subnet",
    "layer2 network expects": "family_missing",
}
vectors = pytest.mark.parametrize("vector", DOCUMENT["networks"], ids=lambda vector: vector["name"])


def _network(vector: Any) -> udn.UDN:
    if "nad" in vector:
        config = {"name": "net", "type": nads.TYPE, **vector["nad"]}
        return nads.network_of(config, namespace="blue", name="net")
    spec = {"namespaceSelector": {}, "network": vector["network"]}
    kind = "ClusterUserDefinedNetwork"
    return udn.parse({"kind": kind, "metadata": {"name": "net"}, "spec": spec})


def _first_free(network: udn.UDN) -> list[str]:
    kept_spans = kept_addresses.kept_spans(network)
    return [
        next(
            str(host)
            for host in ip_network(subnet)
            if not any(
                kept_span.span.overlaps(AddressRange(host, host)) for kept_span in kept_spans
            )
        )
        for subnet in network.subnets
    ]


@vectors
def test_what_is_kept(vector: Any) -> None:
    network = _network(vector)
    assert udn.gateways(network) == vector["gateways"]
    assert udn.management_addresses(network) == vector["management"]
    named_spans = [(span.type, span.name) for span in kept_addresses.kept_spans(network)]
    for type_, name in (
        (kept_addresses.INFRASTRUCTURE, "infrastructure"),
        (kept_addresses.EXCLUDED, "excluded"),
        (kept_addresses.RESERVED_SUBNET, "reserved"),
    ):
        assert [text for kept_type, text in named_spans if kept_type == type_] == vector.get(
            name, []
        )
    if "first_free" in vector:
        assert _first_free(network) == vector["first_free"]


@vectors
def test_what_contradicts_itself(vector: Any) -> None:
    result = kept_addresses.contradictions(_network(vector))
    assert {item.field for item in result if item.fatal} == set(vector.get("fails", {}))
    unprotected = [
        item.message.split(" is in none")[0].split()[-1] for item in result if not item.fatal
    ]
    assert unprotected == vector.get("unprotected", [])


@pytest.mark.parametrize("claim", DOCUMENT["claims"], ids=lambda claim: claim["means"])
def test_what_the_status_of_a_claim_means(claim: Any) -> None:
    status = {"ips": claim["ips"], "conditions": [{"type": "IPsAllocated", **claim["condition"]}]}
    metadata = {"namespace": "blue", "name": "vm.net"}
    parsed = ipamclaim.parse(
        {"metadata": metadata, "spec": {"network": "net", "interface": "net"}, "status": status}
    )
    condition = dialects.allocation_condition(parsed.conditions)
    assert dialects.outcome_of(condition) == dialects.ClaimOutcome[claim["means"]]
    assert parsed.ips == tuple(claim["ips"])
    # Cadastre writes the same reason.
    outcome = dialects.ClaimOutcome[claim["means"]]
    assert dialects.SHIPPED.reasons[outcome] == claim["condition"]["reason"]


@vectors
def test_what_is_given_and_refused(vector: Any) -> None:
    network = _network(vector)
    for ips in vector.get("given", []):
        assert static_vms.fit(ips, network, "it") == tuple(ips)
    for ips, words in vector.get("refused", {}).items():
        with pytest.raises(static_vms.DeclinedError) as declined:
            static_vms.fit(ips.split(), network, "it")
        (code,) = (code for text, code in CODES.items() if words.startswith(text))
        assert declined.value.code == code, ips


@vectors
def test_the_pod_and_the_claim_that_follow(vector: Any) -> None:
    network = _network(vector)
    if expected := vector.get("pod_networks"):
        metadata = {"namespace": "blue", "name": "web", "uid": "1"}
        annotations = {attachments.POD_NETWORKS: json.dumps({"blue/net": expected})}
        pod = attachments.parse_pod({"metadata": metadata | {"annotations": annotations}})
        (attachment,) = pod.attachments
        assert attachment.primary
        assert [str(ip.ip) for ip in attachment.ips] == vector["first_free"]
        assert udn.gateways(network) == expected["gateway_ips"]
        assert not kept_addresses.kept_macs(network).keys() & {attachment.mac}
    if status := vector.get("claim_status"):
        manifest = {
            "metadata": {"namespace": "blue", "name": "vm.net"},
            "spec": {"network": "net", "interface": "net"},
            "status": status,
        }
        claim = ipamclaim.parse(manifest)
        outcome = dialects.outcome_of(dialects.allocation_condition(claim.conditions))
        refused = " ".join(status["of"]) in vector["refused"]
        conflict = dialects.ClaimOutcome.IP_CONFLICT
        assert outcome == (conflict if refused else dialects.ClaimOutcome.ALLOCATED)
        assert claim.ips == (() if refused else tuple(status["of"]))


def test_the_macs_of_both_ports_are_kept() -> None:
    network = udn.UDN(
        "n", "cudn", "n", topology="layer2", role="primary", subnets=("10.0.0.0/24", "fd00::/64")
    )
    ports = {mac: kept_span.port for mac, kept_span in kept_addresses.kept_macs(network).items()}
    assert ports["0a:58:0a:00:00:01"] == "gateway 10.0.0.1"
    assert ports["0a:58:0a:00:00:02"] == "management port 10.0.0.2"
    assert set(ports.values()) == {
        "gateway 10.0.0.1", "gateway fd00::1", "management port 10.0.0.2", "management port fd00::2",
    }  # fmt: skip


@pytest.mark.parametrize("subnet", ["10.0.0.0/31", "10.0.0.0/32", "fd00::/127", "fd00::/128"])
def test_tiny_subnets_have_no_address_outside(subnet: str) -> None:
    network = udn.UDN("n", "cudn", "n", topology="layer2", role="primary", subnets=(subnet,))
    for kept_span in kept_addresses.kept_spans(network):
        assert kept_span.span.within(ip_network(subnet))
    assert all(ip_interface(text).ip in ip_network(subnet) for text in udn.gateways(network))
