"""Objects that describe networks, and the addresses that OVN would give."""

import json
import pathlib
from ipaddress import ip_interface, ip_network
from typing import Any

import pytest

from claims.core.ipamclaims import dialects, ipamclaim
from claims.core.networks import (
    kept_addresses,
    nads,
    static_vms,
    udn,
    udn_manifest as network_manifest,
    udn_manifest as network_udn,
)
from claims.core.networks.udn import UDN
from claims.core.workloads import attachments
from pools.core import errors
from pools.core.addresses import AddressRange
from pools.platform import documents

SELECTOR = {"matchLabels": {"kubernetes.io/metadata.name": "blue"}}
LAYER2 = {
    "role": "Primary",
    "mtu": 1400,
    "subnets": ["10.0.0.0/16", "FD00:0::/64"],
    "defaultGatewayIPs": ["10.0.0.1", "fd00::0001"],
    "reservedSubnets": ["10.0.1.0/24"],
    "infrastructureSubnets": ["10.0.0.0/28"],
    "joinSubnets": ["100.70.0.0/16"],
    "ipam": {"lifecycle": "Persistent"},
}


def cudn(network: object, name: str = "prod", **more: Any) -> dict[str, Any]:
    return {
        "apiVersion": "k8s.ovn.org/v1",
        "kind": "ClusterUserDefinedNetwork",
        "metadata": {"name": name},
        "spec": {"namespaceSelector": SELECTOR, "network": network},
        **more,
    }


def udn_manifest(spec: object, name: str = "blue", namespace: str = "shop") -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"kind": "UserDefinedNetwork", "metadata": metadata, "spec": spec}


def test_a_cluster_udn_with_all_that_it_says() -> None:
    status = {"conditions": [{"type": "NetworkCreated", "status": "True"}]}
    result = network_udn.parse(cudn({"topology": "Layer2", "layer2": LAYER2}, status=status))
    assert result == UDN(
        name="cluster_udn_prod",
        kind="cudn",
        object_name="prod",
        topology="layer2",
        role="primary",
        ipam_mode="Enabled",
        lifecycle="Persistent",
        mtu=1400,
        subnets=("10.0.0.0/16", "fd00::/64"),
        default_gateways=("10.0.0.1", "fd00::1"),
        reserved_subnets=("10.0.1.0/24",),
        infrastructure_subnets=("10.0.0.0/28",),
        join_subnets=("100.70.0.0/16",),
        namespace_selector=SELECTOR,
    )
    assert result.conditions == ({"type": "NetworkCreated", "status": "True"},)
    assert network_udn.parse(network_manifest.render(result)) == result


@pytest.mark.parametrize(
    ("manifest", "expected"),
    [
        (
            udn_manifest({"topology": "Layer2", "layer2": {"role": "Secondary", "ipam": {"mode": "Disabled"}}}),
            UDN("shop_blue", "udn_manifest", "blue", "shop", "layer2", "secondary", "Disabled"),
        ),
        (
            udn_manifest(
                {
                    "topology": "Layer3",
                    "layer3": {"role": "Primary", "subnets": [{"cidr": "10.8.0.0/16", "hostSubnet": 24}]},
                }
            ),
            UDN(
                "shop_blue", "udn_manifest", "blue", "shop", "layer3", "primary", "Enabled",
                subnets=("10.8.0.0/16",),
            ),
        ),
        (
            udn_manifest({"topology": "Layer2", "layer2": {"role": "Primary", "subnets": ["10.0.0.7/24"]}}),
            UDN(
                "shop_blue", "udn_manifest", "blue", "shop", "layer2", "primary", "Enabled",
                subnets=("10.0.0.0/24",),
            ),
        ),
    ],
    ids=["without-ipam", "layer3", "host-bits-of-a-cluster"],
)  # fmt: skip
def test_other_shapes(manifest: dict[str, Any], expected: UDN) -> None:
    assert network_udn.parse(manifest) == expected
    assert network_udn.parse(network_manifest.render(expected)) == expected


def test_a_localnet_has_no_gateways_and_excluded_subnets() -> None:
    part = {
        "role": "Secondary",
        "physicalNetworkName": "phys",
        "subnets": ["192.168.0.0/24"],
        "excludeSubnets": ["192.168.0.0/28"],
    }
    result = network_udn.parse(cudn({"topology": "Localnet", "localnet": part}))
    assert (result.topology, result.exclude_subnets) == ("localnet", ("192.168.0.0/28",))
    assert network_udn.gateways(result) == []


@pytest.mark.parametrize(
    ("network", "expected"),
    [
        ({"topology": "Layer2", "layer2": {}}, "spec.network.layer2.role:required"),
        ({"layer2": LAYER2}, "spec.network.topology:required"),
        (
            {"topology": "Layer2", "layer2": {**LAYER2, "subnets": ["10.0.0.0", 7, "10/8"]}},
            "spec.network.layer2.subnets.0:not_a_cidr spec.network.layer2.subnets.1:wrong_type"
            " spec.network.layer2.subnets.2:not_a_cidr",
        ),
        (
            {"topology": "Layer2", "layer2": {**LAYER2, "defaultGatewayIPs": ["x"], "mtu": "9"}},
            "spec.network.layer2.mtu:wrong_type"
            " spec.network.layer2.defaultGatewayIPs.0:not_an_address",
        ),
        ("Layer2", "spec.network:wrong_type spec.network.topology:required"),
        ({"topology": "Layer4"}, "spec.network.topology:invalid_choice"),
        ({"topology": 2}, "spec.network.topology:wrong_type"),
    ],
)
def test_objects_that_cannot_be_understood(network: object, expected: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        network_udn.parse(cudn(network))
    result = [f"{problem.field}:{problem.code}" for problem in caught.value.problems]
    assert result == expected.split()


@pytest.mark.parametrize(
    ("kind", "name", "namespace", "logical"),
    [
        ("cudn", "prod", "", "cluster_udn_prod"),
        ("udn_manifest", "blue", "shop", "shop_blue"),
        ("udn_manifest", "b.l-ue", "cluster", "cluster_b.l-ue"),
    ],
)
def test_logical_names(kind: str, name: str, namespace: str, logical: str) -> None:
    assert network_udn.logical_name(kind, name, namespace) == logical
    assert network_udn.object_name(kind, logical, namespace) == name
    assert network_udn.object_name(kind, "other-net", namespace) == ""


@pytest.mark.parametrize(
    ("subnets", "configured", "more", "expected"),
    [
        (["10.0.0.0/16"], [], {}, ["10.0.0.1"]),
        (["10.0.0.0/16", "fd00::/64"], [], {}, ["10.0.0.1", "fd00::1"]),
        (["fd00::/64", "10.0.0.0/16"], ["10.0.9.1", "fd00::9"], {}, ["fd00::9", "10.0.9.1"]),
        (["10.0.0.0/16", "fd00::/64"], ["10.0.9.1"], {}, ["10.0.9.1", "fd00::1"]),
        (["10.0.0.0/16"], [], {"infrastructure_subnets": ("10.0.9.0/24",)}, ["10.0.9.0"]),
        (["10.0.0.0/31"], [], {}, ["10.0.0.1"]),
        (["10.0.0.5/32"], [], {}, []),
        ([], [], {}, []),
        (["10.0.0.0/16"], [], {"role": "secondary"}, []),
        (["10.0.0.0/16"], [], {"topology": "layer3"}, []),
    ],
)
def test_gateways(
    subnets: list[str], configured: list[str], more: dict[str, Any], expected: list[str]
) -> None:
    values = {"topology": "layer2", "role": "primary", **more}
    network = UDN(
        "n", "cudn", "n", subnets=tuple(subnets), default_gateways=tuple(configured), **values
    )
    assert network_udn.gateways(network) == expected


# --- What OVN-Kubernetes keeps, gives and refuses (tests/vectors/ovn_kubernetes.yaml) is what
# Cadastre computes
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
