"""VMs and pods as they run, and the addresses that they get."""

import contextlib
import dataclasses
import json
from typing import Any

import pytest

from claims.core.ipamclaims import ipamclaim
from claims.core.networks import static_vms
from claims.core.workloads import attachments, vm_addresses
from claims.core.workloads.vm_addresses import VM, Registrations
from pools.core import errors
from tests.core.vm_world import MAC, claim, entry, network, registrations, vm

OTHER = "02:00:00:00:00:99"
DUAL: Any = ("10.0.0.0/16", "fd00::/64")


def _ips(who: VM, what: Registrations) -> tuple[str, ...]:
    return vm_addresses.choose(who, what).ips


def _declined(who: VM, what: Registrations) -> str:
    with pytest.raises(static_vms.DeclinedError) as caught:
        vm_addresses.choose(who, what)
    assert caught.value.message
    return caught.value.code


def test_by_name_while_the_mac_is_unknown() -> None:
    named_entry = entry(vm="vm-server", namespace="blue")
    for who in (vm(mac=None), VM("blue", "vm-server")):
        address_choice = vm_addresses.choose(who, registrations(named_entry))
        assert (address_choice.mac, address_choice.ips) == (MAC, ("10.0.0.5/16",))
    assert _declined(VM("green", "vm-server"), registrations(named_entry)) == "no_entry"
    assert _declined(VM("blue", "vm-server"), registrations(entry(vm="vm-server"))) == "no_entry"


def test_dual_stack_has_ipv4_first() -> None:
    both = entry("fd00::5/64", "10.0.0.5/16")
    assert _ips(vm(), registrations(both, networks=(network(*DUAL),))) == (
        "10.0.0.5/16",
        "fd00::5/64",
    )


def test_the_length_is_that_of_the_subnet() -> None:
    assert _ips(vm(), registrations(entry("10.0.0.5/24"))) == ("10.0.0.5/16",)
    unseen = dataclasses.replace(network(), subnets=())
    assert _ips(vm(), registrations(entry("10.0.0.5/24"), networks=(unseen,))) == ("10.0.0.5/24",)


@pytest.mark.parametrize(
    ("what", "code"),
    [
        (registrations(), "no_entry"),
        (registrations(entry(mac=OTHER)), "no_entry"),
        (registrations(entry(vm="vm-server", namespace="blue", mac=OTHER)), "mac_differs"),
        (registrations(entry(vm="another")), "entry_of_another_vm"),
        (registrations(entry(namespace="green")), "entry_of_another_vm"),
        (registrations(entry(), entry("10.0.0.6/16")), "ambiguous_entries"),
        (registrations(entry("10.1.0.5/16")), "outside_subnet"),
        (registrations(entry("fd00::5/64")), "outside_subnet"),
        (registrations(entry("10.0.0.0/16")), "unusable_address"),
        (registrations(entry("10.0.255.255/16")), "unusable_address"),
        (registrations(entry("10.0.0.1/16")), "unusable_address"),
        (registrations(entry("10.0.0.9/16"), default_gateways=("10.0.0.9",)), "unusable_address"),
        (registrations(entry("10.0.0.5/16", "10.0.0.6/16")), "too_many_addresses"),
        (registrations(entry(), networks=(network(*DUAL),)), "family_missing"),
        (registrations(entry(), networks=()), "no_primary_network"),
        (registrations(entry(vm="vm-server", namespace="blue"), networks=()), "nad_missing"),
        (registrations(entry(), networks=(network(), network())), "several_networks"),
        (registrations(entry(), persistent=False), "not_persistent"),
        (registrations(entry(), topology="layer3"), "not_layer2"),
        (registrations(claims=(claim(vm="vm-server", mac=OTHER),)), "mac_differs"),
        (registrations(entry(), claims=(claim(vm="another"),)), "claim_of_another_vm"),
    ],
)
def test_nothing_is_asked_for(what: Registrations, code: str) -> None:
    assert _declined(vm(), what) == code


def test_entries_of_other_networks_are_not_asked() -> None:
    elsewhere = dataclasses.replace(entry(), network="another")
    assert _declined(vm(), registrations(elsewhere)) == "no_entry"


def test_of_two_entries_of_a_mac_the_one_that_names_the_vm() -> None:
    named_entry = entry("10.0.0.6/16", vm="vm-server", namespace="blue")
    assert _ips(vm(), registrations(entry(), named_entry)) == ("10.0.0.6/16",)
    assert _ips(vm(), registrations(entry(), entry())) == ("10.0.0.5/16",)  # twice the same


@pytest.mark.parametrize(
    ("fields", "ips"),
    [
        ({"vm": "vm-server", "requested": ("10.0.0.7",)}, ("10.0.0.7/16",)),
        ({"vm": "vm-server", "ips": ("10.0.0.7/16",)}, ("10.0.0.7/16",)),
        ({"vm": "", "mac": MAC, "requested": ("10.0.0.7",)}, ("10.0.0.7/16",)),
    ],
)
def test_a_claim_of_another_name_that_stands_for_the_vm(fields: Any, ips: tuple[str, ...]) -> None:
    address_choice = vm_addresses.choose(vm(), registrations(claims=(claim("odd", **fields),)))
    assert (address_choice.mac, address_choice.ips, address_choice.claim) == (MAC, ips, "odd")


def test_a_claim_of_another_mac_or_vm_is_not_the_vms() -> None:
    for fields in ({"vm": "", "mac": OTHER}, {"vm": ""}, {"vm": "another", "mac": MAC}):
        other = claim("odd", requested=("10.0.0.7",), **fields)
        assert _declined(vm(), registrations(claims=(other,))) == "no_entry"


def test_claims_of_other_names_ask_for_one_thing() -> None:
    asking = [claim(name, vm="vm-server", requested=("10.0.0.7",)) for name in ("a", "b")]
    assert _ips(vm(), registrations(claims=tuple(asking))) == ("10.0.0.7/16",)
    asking[1] = dataclasses.replace(asking[1], requested=("10.0.0.8",))
    called = claim(vm="vm-server")
    assert _declined(vm(), registrations(claims=(called, *asking))) == "ambiguous_claims"


def test_what_the_owner_asks_for_comes_last() -> None:
    requested = ("10.0.0.8/16",)
    address_choice = vm_addresses.choose(vm(), registrations(), requested)
    assert (address_choice.mac, address_choice.ips, address_choice.claim) == (
        MAC,
        requested,
        "vm-server.podnet",
    )
    assert vm_addresses.choose(vm(), registrations(entry()), requested).ips == ("10.0.0.5/16",)
    granted = claim(vm="vm-server", ips=("10.0.0.77/16",))
    assert vm_addresses.choose(vm(), registrations(claims=(granted,)), requested).ips == (
        "10.0.0.77/16",
    )


def test_a_claim_that_nobody_asked_addresses_for_is_left_alone() -> None:
    dynamic = claim(vm="vm-server", ips=("10.0.0.77/16",))
    assert _declined(vm(), registrations(claims=(dynamic,))) == "no_entry"


def test_the_name_of_the_claim() -> None:
    def called(who: VM, *claims: Any) -> str:
        result = registrations(entry(vm=who.name, namespace="blue"), claims=claims)
        return vm_addresses.choose(who, result).claim

    assert called(vm("a.b", interface="c")) == "a.b.c"
    assert called(vm(interface="random_net")) == "vm-server.random.net"
    unseen = VM("blue", "vm-server")
    assert called(unseen) == "vm-server.cluster.udn.prod"
    assert called(unseen, claim("vm-server.net", vm="vm-server")) == "vm-server.net"


def test_names_that_are_too_long() -> None:
    long = "v" * 60 + "." + "w" * 190
    cut = vm_addresses.choose(vm(long), registrations(entry()))
    assert cut.claim == ipamclaim.compose_key(long, "podnet")
    assert len(cut.claim) == 253
    assert "cut at 253 characters" in cut.notes[0]
    impossible = vm_addresses.choose(vm("v" * 252), registrations(entry()))
    assert impossible.claim == ""
    assert "would be too long" in impossible.notes[0]


# --- What annotations and objects of KubeVirt and OVN-Kubernetes say, and what cannot be read of
# them
STATUS = [
    {"name": "ovn-kubernetes", "interface": "eth0", "ips": ["10.131.0.35"], "mac": "0a:58:0a:83:00:23", "dns": {}},
    {"name": "ovn-kubernetes", "interface": "ovn-udn1", "ips": ["10.0.0.4"], "mac": "0a:58:0a:00:00:04", "default": True},
    {"name": "shop/storage", "interface": "net1", "ips": ["192.168.9.4"], "mac": "02:00:00:00:00:09"},
]  # fmt: skip
NETWORKS = {
    "default": {"ip_addresses": ["10.131.0.35/23"], "mac_address": "0a:58:0a:83:00:23", "role": "infrastructure-locked"},
    "shop/prod": {"ip_addresses": ["10.0.0.4/24", "fd00::4/64"], "mac_address": "0A:58:0a:00:00:04", "role": "primary"},
}  # fmt: skip


def pod(networks: Any = NETWORKS, status: Any = STATUS, **more: Any) -> dict[str, Any]:
    annotations = {
        key: value if isinstance(value, str) else json.dumps(value)
        for key, value in (
            (attachments.POD_NETWORKS, networks),
            (attachments.NETWORK_STATUS, status),
        )
        if value is not None
    }
    metadata = {"namespace": "shop", "name": "web", "uid": "u-1", "annotations": annotations}
    return {"metadata": metadata | more.pop("metadata", {}), "spec": {"nodeName": "n1"}} | more


def test_a_pod_on_a_primary_and_a_secondary_network() -> None:
    result = attachments.parse_pod(pod())
    assert [(attachment.nad, attachment.mac, list(map(str, attachment.ips)), attachment.primary) for attachment in result.attachments] == [
        ("shop/prod", "0a:58:0a:00:00:04", ["10.0.0.4/24", "fd00::4/64"], True),
        ("shop/storage", "02:00:00:00:00:09", ["192.168.9.4/32"], False),
    ]  # fmt: skip
    assert (result.vm, result.over, result.problems) == ("", False, ())


def test_two_attachments_to_one_nad() -> None:
    networks = {key: {"ip_address": "10.0.0.4/24"} for key in ("a/b", "a/b/1")}
    result = attachments.parse_pod(pod(networks, None)).attachments
    assert [(item.nad, item.key) for item in result] == [("a/b", "a/b"), ("a/b", "a/b/1")]


@pytest.mark.parametrize(
    ("networks", "code", "count"),
    [
        ("{", "json_syntax", 0),
        ("[" * 100_000, "json_syntax", 0),
        ("[]", "wrong_type", 0),
        ("7", "wrong_type", 0),
        ({"shop": {}}, "attachment", 0),
        ({"a/b": 7, "c/d": {}}, "attachment", 1),
        ({"a/b": {"mac_address": "ff:ff:ff:ff:ff:ff"}}, "multicast_mac", 1),
        ({"a/b": {"mac_address": 7}}, "wrong_type", 1),
        ({"a/b": {"ip_addresses": "10.0.0.4"}}, "wrong_type", 1),
        ({"a/b": {"ip_addresses": ["10.0.0.400/24", "10.0.0.4/24"]}}, "not_an_address", 1),
        ({"a/b": {"ip_addresses": [7, {}]}}, "not_an_address", 1),
        ({"a/b": {"ip_addresses": ["%eth0"]}}, "not_an_address", 1),
    ],
)
def test_what_cannot_be_read_is_told(networks: Any, code: str, count: int) -> None:
    result = attachments.parse_pod(pod(networks, None))
    assert {problem.code for problem in result.problems} == {code}
    assert len(result.attachments) == count


@pytest.mark.parametrize("status", ["null", "{}", "[7]", '[{"name": 7}]', '[{"name": "a/b", "ips": 7}]'])  # fmt: skip
def test_an_odd_network_status_costs_no_other_attachment(status: str) -> None:
    assert "shop/prod" in {
        attachment.nad for attachment in attachments.parse_pod(pod(status=status)).attachments
    }


@pytest.mark.parametrize(
    ("change", "attached"),
    [
        ({}, True),
        ({"networks": {"default": {}}, "status": STATUS[:2]}, False),
        ({"networks": None, "status": STATUS}, True),
        ({"networks": "{", "status": None}, False),
        ({"networks": None, "status": None}, False),
        ({"networks": None, "status": None, "metadata": {"labels": {"kubevirt.io": "virt-launcher"}}}, True),
    ],
)  # fmt: skip
def test_which_pods_are_kept(change: dict[str, Any], attached: bool) -> None:
    assert attachments.is_attached(pod(**change)) is attached


def test_a_host_network_pod_is_attached_to_nothing() -> None:
    assert attachments.parse_pod(pod(spec={"hostNetwork": True})).attachments == ()


OWNER = {
    "apiVersion": "kubevirt.io/v1",
    "kind": "VirtualMachineInstance",
    "name": "db",
    "uid": "vmi-1",
}


@pytest.mark.parametrize(
    "metadata",
    [
        {"ownerReferences": [OWNER]},
        {"annotations": {"kubevirt.io/domain": "db"}, "ownerReferences": [OWNER | {"name": ""}]},
        {"labels": {"kubevirt.io": "virt-launcher", "vm.kubevirt.io/name": "db", "kubevirt.io/created-by": "vmi-1"}},
    ],
)  # fmt: skip
def test_a_launcher_pod_names_its_vm(metadata: dict[str, Any]) -> None:
    result = attachments.parse_pod(
        pod(metadata={"labels": {"kubevirt.io": "virt-launcher"}} | metadata)
    )
    assert (result.vm, result.vmi_uid) == ("db", "vmi-1")


@pytest.mark.parametrize("read", [attachments.parse_pod, attachments.parse_instance, attachments.parse_machine, attachments.is_attached])  # fmt: skip
@pytest.mark.parametrize("odd", [{}, {"metadata": 7}, {"metadata": {"name": "a", "uid": "b", "labels": []}, "spec": 7, "status": []}])  # fmt: skip
def test_objects_of_any_shape(read: Any, odd: dict[str, Any]) -> None:
    with contextlib.suppress(errors.InvalidInput):
        read(odd)
