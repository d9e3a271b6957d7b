"""Can a network hold static VMs: the musts of the enhancement proposal, and what is only to be minded."""

import dataclasses
from typing import Any

import pytest

from claims.core.networks import static_vms

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
