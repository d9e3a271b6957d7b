"""(Cluster)UserDefinedNetworks as a cluster shows them, and back as manifests."""

from typing import Any

import pytest

from claims.core.networks import udn as network_manifest, udn as network_udn
from claims.core.networks.udn import UDN
from pools.core import errors

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


def udn(spec: object, name: str = "blue", namespace: str = "shop") -> dict[str, Any]:
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
            udn({"topology": "Layer2", "layer2": {"role": "Secondary", "ipam": {"mode": "Disabled"}}}),
            UDN("shop_blue", "udn", "blue", "shop", "layer2", "secondary", "Disabled"),
        ),
        (
            udn(
                {
                    "topology": "Layer3",
                    "layer3": {"role": "Primary", "subnets": [{"cidr": "10.8.0.0/16", "hostSubnet": 24}]},
                }
            ),
            UDN(
                "shop_blue", "udn", "blue", "shop", "layer3", "primary", "Enabled",
                subnets=("10.8.0.0/16",),
            ),
        ),
        (
            udn({"topology": "Layer2", "layer2": {"role": "Primary", "subnets": ["10.0.0.7/24"]}}),
            UDN(
                "shop_blue", "udn", "blue", "shop", "layer2", "primary", "Enabled",
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
        ("udn", "blue", "shop", "shop_blue"),
        ("udn", "b.l-ue", "cluster", "cluster_b.l-ue"),
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
