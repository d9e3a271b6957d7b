"""What may be said of a new network: every rule of the CRD and of OVN-Kubernetes, all at once."""

from typing import Any

import pytest

from claims.core.networks import rules
from claims.core.networks.udn import UDN
from pools.core import object_reader

GOOD: dict[str, Any] = {
    "name": "cluster_udn_prod",
    "subnets": ["10.0.0.0/16", "fd00::/64"],
    "lifecycle": "Persistent",
}


def read(body: dict[str, Any]) -> tuple[UDN, list[str]]:
    fields = object_reader.Fields(body, "", object_reader.ProblemReport())
    network = rules.parse_network(fields)
    return network, [f"{problem.field}:{problem.code}" for problem in fields.report.problems]


def body(**changes: Any) -> dict[str, Any]:
    return {key: value for key, value in {**GOOD, **changes}.items() if value is not None}


V4 = {"subnets": ["10.0.0.0/16"]}
ROWS = {
    "good": ({}, ""),
    "in-other-words": ({"topology": "Layer2", "role": "Primary", "kind": "CUDN"}, ""),
    "all-at-once": (
        {"name": "a b", "subnets": ["10.0.0.1/16", 7], "mtu": True, "role": "tertiary"},
        "role:invalid_choice name:logical_name subnets.0:host_bits_set subnets.1:wrong_type"
        " mtu:wrong_type",
    ),
    "no-name": ({"name": None}, "name:required"),
    "name-of-two": ({"name": "a,b"}, "name:logical_name"),
    "long-name": ({"name": "n" * 254}, "name:too_long"),
    "no-subnets": ({"subnets": None}, "subnets:required"),
    "empty-subnets": ({"subnets": []}, "subnets:required"),
    "three-subnets": (
        {"subnets": ["10.0.0.0/16", "10.1.0.0/16", "fd00::/64"]},
        "subnets:too_many subnets.1:one_per_family",
    ),
    "overlapping-subnets": (
        {"subnets": ["10.0.0.0/16", "10.0.1.0/24"]},
        "subnets.1:one_per_family subnets.1:cidr_overlap",
    ),
    "no-room": ({"subnets": ["10.0.0.0/31"]}, "subnets.0:subnet_too_small"),
    "too-large": ({"subnets": ["0.0.0.0/0"]}, "subnets.0:prefix_too_short"),
    "loopback": ({"subnets": ["127.0.0.0/16"]}, "subnets.0:special_purpose"),
    "subnet-is-text": ({"subnets": "10.0.0.0/16"}, "subnets:wrong_type"),
    "gateways": ({"default_gateways": ["10.0.9.1", "fd00::9"]}, ""),
    "gateway-outside": (
        {**V4, "default_gateways": ["10.1.0.1"]},
        "default_gateways.0:gateway_conflict",
    ),
    "gateway-of-one-family": (
        {"default_gateways": ["10.0.0.1"]},
        "default_gateways:gateway_conflict",
    ),
    "two-gateways": (
        {**V4, "default_gateways": ["10.0.0.1", "10.0.0.2"]},
        "default_gateways.1:gateway_conflict",
    ),
    "three-gateways": (
        {"default_gateways": ["10.0.0.1", "fd00::1", "fd00::2"]},
        "default_gateways:too_many default_gateways.2:gateway_conflict",
    ),
    "gateway-of-no-family": (
        {**V4, "default_gateways": ["10.0.0.1", "fd00::1"]},
        "default_gateways.1:mixed_family",
    ),
    "gateway-link-local": (
        {"subnets": ["fd00::/64"], "default_gateways": ["fe80::1"]},
        "default_gateways.0:gateway_conflict",
    ),
    "gateway-is-the-network": (
        {**V4, "default_gateways": ["10.0.0.0"]},
        "default_gateways.0:gateway_conflict",
    ),
    "gateway-is-broadcast": (
        {**V4, "default_gateways": ["10.0.255.255"]},
        "default_gateways.0:gateway_conflict",
    ),
    "last-ipv6-is-a-host": (
        {"subnets": ["fd00::/112"], "default_gateways": ["fd00::ffff"]},
        "",
    ),
    "gateway-beyond-the-first-65536": (
        {"subnets": ["fd00::/64"], "default_gateways": ["fd00::1:0"]},
        "default_gateways:kept_twice",
    ),
    "anycast-is-none": (
        {"subnets": ["fd00::/64"], "default_gateways": ["fd00::"]},
        "default_gateways.0:gateway_conflict",
    ),
    "gateway-with-prefix": (
        {**V4, "default_gateways": ["10.0.0.1/16"]},
        "default_gateways.0:not_an_address",
    ),
    "gateway-outside-infrastructure": (
        {**V4, "default_gateways": ["10.0.9.1"], "infrastructure_subnets": ["10.0.0.0/28"]},
        "default_gateways.0:gateway_conflict",
    ),
    "reserved-holds-gateway": (
        {**V4, "default_gateways": ["10.0.0.1"], "reserved_subnets": ["10.0.0.0/24"]},
        "reserved_subnets:kept_twice",
    ),
    "reserved-outside": (
        {**V4, "reserved_subnets": ["10.1.0.0/24", "10.0.0.0/15", "fd00::/80"]},
        "reserved_subnets.0:range_outside_cidr reserved_subnets.1:range_outside_cidr"
        " reserved_subnets.2:mixed_family reserved_subnets.0:cidr_overlap",
    ),
    "reserved-host-bits": (
        {**V4, "reserved_subnets": ["10.0.0.5/24"]},
        "reserved_subnets.0:host_bits_set",
    ),
    "overlapping-reservations": (
        {
            **V4,
            "reserved_subnets": ["10.0.1.0/24", "10.0.1.0/25"],
            "infrastructure_subnets": ["10.0.1.0/28"],
        },
        "reserved_subnets.1:cidr_overlap infrastructure_subnets.0:cidr_overlap",
    ),
    "too-many-reservations": (
        {
            **V4,
            "reserved_subnets": [f"10.0.{n}.0/24" for n in range(100, 126)],
            "infrastructure_subnets": [f"10.0.{n}.0/24" for n in range(5)],
        },
        "reserved_subnets:too_many infrastructure_subnets:too_many",
    ),
    "as-many-as-can-be": (
        {
            **V4,
            "reserved_subnets": [f"10.0.{n}.0/24" for n in range(100, 125)],
            "infrastructure_subnets": [f"10.0.{n}.0/24" for n in range(4)],
        },
        "",
    ),
    "secondary": (
        {
            **V4,
            "role": "secondary",
            "default_gateways": ["10.0.0.1"],
            "join_subnets": ["1.0.0.0/16"],
        },
        "default_gateways:primary_only join_subnets:primary_only",
    ),
    "without-ipam": (
        {"role": "secondary", "ipam_mode": "Disabled", "subnets": None, "lifecycle": None},
        "",
    ),
    "primary-without-ipam": (
        {"ipam_mode": "Disabled"},
        "ipam_mode:primary_needs_ipam lifecycle:lifecycle_needs_ipam subnets:subnets_without_ipam",
    ),
    "join-overlaps": ({**V4, "join_subnets": ["10.0.0.0/8"]}, "subnets.0:cidr_overlap"),
    "joins-of-a-family": (
        {"join_subnets": ["100.70.0.0/16", "100.71.0.0/16"]},
        "join_subnets.1:one_per_family",
    ),
    "mtu-of-ipv6": ({"mtu": 1279}, "mtu:out_of_range"),
    "mtu-of-ipv4": ({**V4, "mtu": 1279}, ""),
    "mtu-too-large": ({**V4, "mtu": 65537}, "mtu:out_of_range"),
    "layer3": (
        {"topology": "layer3", "lifecycle": None, "subnets": ["10.0.0.0/16", "10.1.0.0/16"]},
        "",
    ),
    "layer3-persistent": (
        {"topology": "layer3", "reserved_subnets": ["10.0.0.0/24"]},
        "lifecycle:not_of_this_kind reserved_subnets:not_of_this_kind",
    ),
    "localnet": ({"topology": "localnet"}, "topology:invalid_choice"),
    "udn": ({"kind": "udn", "name": "shop_blue", "namespace": "shop"}, ""),
    "udn-without-namespace": ({"kind": "udn"}, "namespace:required"),
    "udn-with-selector": (
        {"kind": "udn", "namespace": "shop", "namespaces": ["a"]},
        "namespaces:not_of_this_kind",
    ),
    "cudn-in-a-namespace": ({"namespace": "shop"}, "namespace:not_of_this_kind"),
    "nad": ({"kind": "nad"}, "kind:invalid_choice"),
    "both-selectors": (
        {"namespaces": ["a"], "namespace_selector": {}},
        "namespaces:conflicting_fields",
    ),
    "bad-selector": (
        {"namespace_selector": {"matchLabel": {}}},
        "namespace_selector.matchLabel:unknown_field",
    ),
    "bad-namespaces": ({"namespaces": ["A", 1]}, "namespaces.0:k8s_name namespaces.1:wrong_type"),
}


@pytest.mark.parametrize(("changes", "expected"), ROWS.values(), ids=ROWS.keys())
def test_rules(changes: dict[str, Any], expected: str) -> None:
    _, problems = read(body(**changes))
    assert sorted(problems) == sorted(expected.split())


def test_what_is_read() -> None:
    result, problems = read(
        body(namespaces=["red", "blue"], default_gateways=["10.0.9.1", "FD00::9"])
    )
    assert problems == []
    values = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["blue", "red"]}
    assert result == UDN(
        name="cluster_udn_prod",
        kind="cudn",
        object_name="prod",
        topology="layer2",
        role="primary",
        ipam_mode="Enabled",
        lifecycle="Persistent",
        subnets=("10.0.0.0/16", "fd00::/64"),
        default_gateways=("10.0.9.1", "fd00::9"),
        namespace_selector={"matchExpressions": [values]},
    )
    assert list(rules.selected_namespaces(result.namespace_selector)) == ["blue", "red"]


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"namespaces": ["blue"]}, ""),
        ({"namespace_selector": {}}, ""),
        ({}, "namespaces:required"),
        ({"name": "prod", "namespaces": ["blue"]}, "name:logical_name"),
        ({"name": "cluster_udn_Prod", "namespaces": ["blue"]}, "name:k8s_name"),
        ({"kind": "udn", "namespace": "a", "name": "a_b"}, "kind:not_of_this_kind"),
    ],
)
def test_what_is_to_be_written(changes: dict[str, Any], expected: str) -> None:
    fields = object_reader.Fields(body(**changes), "", object_reader.ProblemReport())
    rules.check_applied(fields, rules.parse_network(fields))
    result = [f"{problem.field}:{problem.code}" for problem in fields.report.problems]
    assert sorted(result) == sorted(expected.split())


def test_all_that_cannot_be_changed_is_said() -> None:
    immutable = {field for field, _ in rules.IMMUTABLE}
    changeable = {"namespace_selector", "namespaces", "ipam_mode", "kind", "namespace"}
    assert immutable | changeable == set(rules.FIELDS)
