"""Networks that a pod or VM selects."""

import contextlib
import dataclasses
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from claims.core.networks import nads, static_vms
from claims.core.networks.nads import Attachment
from claims.core.networks.udn import UDN
from claims.core.workloads import network_selection as selection
from claims.core.workloads.network_selection import DEFAULT_NETWORK, Element
from pools.core import errors
from tests.core.any_json import any_json

ELEMENT = Element(
    "default", "ovn-kubernetes", "02:03:04:05:06:07", ("10.0.0.5/24",), "vm-server.podnet"
)
PROPOSED_ELEMENT = """[{
  "name": "default",
  "namespace": "ovn-kubernetes",
  "mac": "02:03:04:05:06:07",
  "ipam-claim-reference": "vm-server.podnet",
  "ips": [
    "10.0.0.5/24"
  ]
}]"""


def _one(**members: Any) -> str:
    return json.dumps([{"name": "default", **members}])


def test_the_element_of_the_proposal() -> None:
    assert selection.default_network(PROPOSED_ELEMENT) == ELEMENT
    assert selection.render([ELEMENT]) == (
        '[{"name":"default","namespace":"ovn-kubernetes","mac":"02:03:04:05:06:07",'
        '"ips":["10.0.0.5/24"],"ipam-claim-reference":"vm-server.podnet"}]'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (_one(mac="02-03-04-05-06-07"), Element("default", mac="02:03:04:05:06:07")),
        (_one(ips=None, mac="", namespace=""), Element("default")),
        (
            _one(ips=["fd00::0:5/64", "10.0.0.5"]),
            Element("default", ips=("fd00::5/64", "10.0.0.5")),
        ),
        (_one(interface="eth0"), Element("default", other={"interface": "eth0"})),
    ],
)
def test_what_is_read(text: str, expected: Element) -> None:
    result = selection.default_network(text)
    assert result == expected
    assert selection.default_network(selection.render([result])) == result


@pytest.mark.parametrize(
    ("text", "code", "field"),
    [
        ("[{]", "json_syntax", ""),
        ('[{"name": "a"} 1]', "json_syntax", ""),
        ("{}", "list_expected", ""),
        ('"default"', "list_expected", ""),
        ("[]", "one_element_expected", ""),
        ('[{"name": "a"}, {"name": "b"}]', "one_element_expected", ""),
        ("[1]", "wrong_type", ".0"),
        ('[{"namespace": "a"}]', "required", ".0.name"),
        (_one(ip=["10.0.0.5/24"]), "unknown_field", ".0.ip"),
        ('[{"name": "a", "name": "b"}]', "duplicate_key", ".name"),
        (_one(ips="10.0.0.5/24"), "wrong_type", ".0.ips"),
        (_one(ips=["10.0.0.256/24"]), "not_an_address", ".0.ips.0"),
        (_one(ips=["10.0.0.5/24", "10.0.0.6/33"]), "prefix_length", ".0.ips.1"),
        (_one(mac="02:03"), "mac_syntax", ".0.mac"),
        (_one(mac=1), "wrong_type", ".0.mac"),
        ("[" * 100_000, "too_deep", ""),
        ('[{"name": NaN}]', "not_finite", ""),
        ("[" + "1" * 5000 + "]", "bad_number", ""),
        ("ovn-kubernetes/default", "short_form_has_no_ips", ""),
        ("default@eth0", "short_form_has_no_ips", ""),
        ("  ", "blank", ""),
        (None, "wrong_type", ""),
        ({"name": "a"}, "wrong_type", ""),
        (_one(cni="x" * selection.MAX_BYTES), "too_large", ""),
    ],
)
def test_what_cannot_be_understood(text: object, code: str, field: str) -> None:
    with pytest.raises(errors.InvalidAnnotation) as caught:
        selection.default_network(text)
    (problem,) = caught.value.problems
    assert (problem.code, problem.field) == (code, DEFAULT_NETWORK + field)


def test_json_errors_have_a_position() -> None:
    with pytest.raises(errors.InvalidAnnotation, match="line 2, column 3"):
        selection.default_network('[\n  name: "a"]')


def test_networks_in_both_forms() -> None:
    short = selection.networks("blue/net-a@eth1, net.b,net-c@x", namespace="green")
    assert short == [
        Element("net-a", "blue", other={"interface": "eth1"}),
        Element("net.b", "green"),
        Element("net-c", "green", other={"interface": "x"}),
    ]
    listed = '[{"name": "net-a", "namespace": "blue", "interface": "eth1"}, {"name": "net.b"}]'
    assert selection.networks(listed, namespace="green") == short[:2]


@pytest.mark.parametrize("text", ["a,,b", "a/b/c", "A", "a@", "a@b@c", "a@" + "x" * 16, "a b"])
def test_a_short_form_that_is_none(text: str) -> None:
    with pytest.raises(errors.InvalidAnnotation) as caught:
        selection.networks(text)
    assert caught.value.code == "short_form"


def test_addresses_of_a_vm() -> None:
    text = '{"default": ["10.0.0.5", "fd00::0:5"], "b": []}'
    result = selection.vm_addresses(text)
    assert result == {"default": ("10.0.0.5", "fd00::5"), "b": ()}
    assert selection.render_addresses(result) == '{"b":[],"default":["10.0.0.5","fd00::5"]}'


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("[]", "object_expected"),
        ('{"a": "10.0.0.5"}', "wrong_type"),
        ('{"a": ["10.0.0.5/24"]}', "not_an_address"),
        ('{"a": [null]}', "wrong_type"),
        ('{"a": [], "a": []}', "duplicate_key"),
    ],
)
def test_addresses_that_are_none(text: str, code: str) -> None:
    with pytest.raises(errors.InvalidAnnotation) as caught:
        selection.vm_addresses(text)
    assert caught.value.code == code


_JSON = any_json(" ".join(selection._KEYS))


@pytest.mark.exhaustive
@given(st.text() | _JSON.map(json.dumps) | _JSON)
def test_nothing_else_is_raised(text: object) -> None:
    for read in (selection.networks, selection.default_network, selection.vm_addresses):
        with contextlib.suppress(errors.InvalidAnnotation):
            read(text)


def test_the_same_addresses() -> None:
    assert selection.same_addresses(["10.0.0.5/24", "fd00::5"], ["fd00:0::5/64", "10.0.0.5"])
    assert not selection.same_addresses(["10.0.0.5/24"], ["10.0.0.6/24"])
    assert selection.strip_prefix("10.0.0.5/24") == "10.0.0.5"


# --- NetworkAttachmentDefinitions: comma-separated texts in a JSON text, and those of other
# plugins
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


# --- Can a network hold static VMs: the musts of the enhancement proposal, and what is only to be
# minded
WITH, WITHOUT = True, False  # persistent IPs


@dataclasses.dataclass
class Network:
    name: str = "cluster_udn_prod"
    kind: str = "cudn"
    object_name: str = "prod"
    namespace: str = ""
    topology: str = "layer2"
    role: str = "primary"
    lifecycle: str = "Persistent"
    ipam_mode: str = "Enabled"
    uid: str = "u-1"
    subnets: tuple[str, ...] = ("10.0.0.0/16",)
    default_gateways: tuple[str, ...] = ()
    reserved_subnets: tuple[str, ...] = ()
    infrastructure_subnets: tuple[str, ...] = ()
    exclude_subnets: tuple[str, ...] = ()
    join_subnets: tuple[str, ...] = ()


@pytest.mark.parametrize(
    ("changes", "nads", "reasons", "notes"),
    [
        ({}, [WITH], "", ""),
        ({}, [WITH, WITHOUT], "", "some_nads_not_persistent"),
        ({}, [WITHOUT], "nad_not_persistent", ""),
        ({}, [], "", "no_nad"),
        ({"uid": ""}, [], "", "not_in_cluster"),
        ({"lifecycle": ""}, [WITH], "not_persistent", ""),
        ({"topology": "layer3", "lifecycle": ""}, [WITH], "not_layer2 not_persistent", ""),
        ({"topology": "localnet", "role": "secondary"}, [WITH], "not_layer2 not_primary", ""),
        ({"topology": ""}, [WITH], "not_layer2", ""),
        ({"role": "secondary"}, [WITH], "not_primary", ""),
        ({"ipam_mode": "Disabled", "subnets": ()}, [WITH], "ipam_disabled no_subnets", ""),
        ({"kind": "", "uid": ""}, [], "not_seen", ""),
        ({"gone": True}, [WITH], "gone", ""),
        (
            {"kind": "udn", "namespace": "shop", "object_name": "a", "name": "shop_a"},
            [WITH],
            "",
            "not_cluster_udn",
        ),
        ({"name": "prod-network", "uid": ""}, [], "", "logical_name not_in_cluster"),
        ({"kind": "nad", "name": "prod-network"}, [WITH], "", ""),
        ({"reserved_subnets": ("10.0.1.0/24",)}, [WITH], "", ""),
        ({"reserved_subnets": ("10.0.0.0/30", "10.0.1.0/24")}, [WITH], "", "kept_twice kept_twice"),
    ],
)
def test_results(changes: dict[str, Any], nads: list[bool], reasons: str, notes: str) -> None:
    gone = changes.pop("gone", False)
    static_vm_check = static_vms.check(Network(**changes), nads, gone=gone)
    assert [reason.code for reason in static_vm_check.reasons] == reasons.split()
    assert [note.code for note in static_vm_check.notes] == notes.split()
    assert static_vm_check.ok is not bool(reasons)
    assert all(
        item.message.endswith(".") for item in (*static_vm_check.reasons, *static_vm_check.notes)
    )
