"""NetworkAttachmentDefinitions: comma-separated texts in a JSON text, and those of other plugins."""

import json
from typing import Any

import pytest

from claims.core.networks import nads
from claims.core.networks.nads import Attachment
from claims.core.networks.udn import UDN
from pools.core import errors

CONFIG = {
    "cniVersion": "1.1.0",
    "type": "ovn-k8s-cni-overlay",
    "name": "cluster_udn_prod",
    "netAttachDefName": "blue/prod",
    "topology": "layer2",
    "role": "primary",
    "subnets": "10.0.0.0/16, fd00:0::/64",
    "defaultGatewayIPs": "10.0.0.1,fd00::1",
    "reservedSubnets": "10.0.1.0/24,10.0.2.0/24",
    "infrastructureSubnets": "10.0.0.0/28",
    "joinSubnet": "100.65.0.0/16,fd99::/64",
    "mtu": 1400,
    "allowPersistentIPs": True,
}
NETWORK = UDN(
    name="cluster_udn_prod",
    kind="nad",
    object_name="prod",
    namespace="blue",
    topology="layer2",
    role="primary",
    ipam_mode="Enabled",
    lifecycle="Persistent",
    mtu=1400,
    subnets=("10.0.0.0/16", "fd00::/64"),
    default_gateways=("10.0.0.1", "fd00::1"),
    reserved_subnets=("10.0.1.0/24", "10.0.2.0/24"),
    infrastructure_subnets=("10.0.0.0/28",),
    join_subnets=("100.65.0.0/16", "fd99::/64"),
)
OWNED = {"ownerReferences": [{"kind": "ClusterUserDefinedNetwork", "name": "prod"}]}
LABELLED = {"labels": {"k8s.ovn.org/user-defined-network": ""}}


def nad(config: object, **metadata: Any) -> dict[str, Any]:
    spec = {} if config is None else {"config": config}
    return {"metadata": {"namespace": "blue", "name": "prod", **metadata}, "spec": spec}


def nad_config(**changes: Any) -> str:
    config = {key: value for key, value in {**CONFIG, **changes}.items() if value is not None}
    return json.dumps(config)


def read(**changes: Any) -> UDN:
    network = nads.parse(nad(nad_config(**changes))).network
    assert network is not None
    return network


@pytest.mark.parametrize("metadata", [{}, OWNED, LABELLED, {"labels": 1}])
def test_one_of_ovn_kubernetes(metadata: dict[str, Any]) -> None:
    attachment = nads.parse(nad(nad_config(), **metadata))
    assert attachment == Attachment("blue", "prod", NETWORK, True, CONFIG)


@pytest.mark.parametrize(
    "config",
    [
        None,
        "",
        "  ",
        '{"type": "macvlan", "name": "x", "ipam": {"subnets": 7}}',
        "{}",
        '{"type": 1}',
        '{"cniVersion": "0.4.0", "name": "ovn-kubernetes", "type": "ovn-k8s-cni-overlay"}',
    ],
)
def test_others_are_left_alone(config: object) -> None:
    assert nads.parse(nad(config)).network is None


def test_layer3_keeps_the_cidrs() -> None:
    result = read(
        topology="layer3", subnets="10.128.0.0/14/23, fd00::/48/64", allowPersistentIPs=None
    )
    assert result.subnets == ("10.128.0.0/14", "fd00::/48")
    assert result.lifecycle == ""


def test_without_subnets_there_is_no_ipam() -> None:
    result = read(subnets=None, role=None)
    assert (result.ipam_mode, result.role, result.subnets) == ("Disabled", "secondary", ())


@pytest.mark.parametrize(
    ("config", "codes"),
    [
        ("{", ["config_syntax"]),
        ("[]", ["config_syntax"]),
        ("[" * 100_000, ["config_syntax"]),
        ("x" * (1 << 19), ["config_syntax"]),
        (7, ["wrong_type"]),
        (nad_config(name=None), ["required"]),
        (nad_config(name=5, subnets="10.0.0.0/99"), ["not_a_cidr", "wrong_type"]),
        (nad_config(subnets=["10.0.0.0/16"]), ["wrong_type"]),
        (nad_config(defaultGatewayIPs="10.0.0.1/24"), ["not_an_address"]),
        (nad_config(subnets="10.0.0.0/16/24"), ["not_a_cidr"]),
    ],
)
def test_broken_ones(config: object, codes: list[str]) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        nads.parse(nad(config))
    assert sorted(problem.code for problem in caught.value.problems) == codes


@pytest.mark.parametrize(
    ("changes", "fields"),
    [
        ({}, []),
        ({"subnets": "fd00::/64,10.0.0.0/16"}, []),
        ({"mtu": 9000}, []),
        ({"topology": "layer3"}, ["topology"]),
        ({"allowPersistentIPs": False, "subnets": "10.1.0.0/16"}, ["subnets", "lifecycle"]),
        ({"defaultGatewayIPs": None}, ["default_gateways"]),
    ],
)
def test_what_disagrees_with_the_network(changes: dict[str, Any], fields: list[str]) -> None:
    assert [field for field, _, _ in nads.disagreements(read(**changes), NETWORK)] == fields
