"""IPAMClaims: their names, their fields and the ways in which they are written."""

import pathlib
from datetime import UTC, datetime
from ipaddress import ip_network
from typing import Any

import pytest
import yaml

from claims.core.ipamclaims import dialects as words, ipamclaim
from claims.core.ipamclaims.dialects import ClaimOutcome
from pools.core import errors

LONG = "v" * 250


@pytest.mark.parametrize(
    ("vm", "network", "expected"),
    [
        ("vm1", "podnet", "vm1.podnet"),
        ("vm1", "random_net", "vm1.random.net"),
        ("vm1", "random.net", "vm1.random.net"),
        ("VM1", "PodNet", "vm1.podnet"),
        ("vm1", "cluster_udn_prod", "vm1.cluster.udn.prod"),
        ("a.b", "c", "a.b.c"),
        ("a", "b.c", "a.b.c"),
        ("vm1", "-net-", "vm1.net"),
        ("vm1", "net-_-x", "vm1.net.x"),
        ("vm-1", "a--b", "vm-1.a--b"),
        ("vm1", "", "vm1"),
        ("", "", ""),
        ("vm1", "nétwork", "vm1.n.twork"),
        (LONG, "ab", LONG + ".ab"),
        (LONG, "abc", LONG + ".ab"),
        ("v" * 252, "net", "v" * 252 + "."),
    ],
)
def test_names_are_made_as_ipam_extensions_makes_them(vm: str, network: str, expected: str) -> None:
    assert ipamclaim.compose_key(vm, network) == expected


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([("a.b", "c"), ("a", "b.c"), ("a", "b")], {"a.b.c": [("a.b", "c"), ("a", "b.c")]}),
        (
            [("vm1", "random_net"), ("vm1", "random.net")],
            {"vm1.random.net": [("vm1", "random_net"), ("vm1", "random.net")]},
        ),
        (
            [(LONG, "net-one"), (LONG, "net-two")],
            {LONG + ".ne": [(LONG, "net-one"), (LONG, "net-two")]},
        ),
        ([("vm1", "net"), ("vm1", "net")], {}),
        ([("vm1", "net"), ("vm2", "net")], {}),
    ],
    ids=["dots", "underscore", "cut", "the same twice", "different"],
)
def test_collisions(pairs: list[ipamclaim.Pair], expected: dict[str, list[ipamclaim.Pair]]) -> None:
    assert ipamclaim.name_collisions(pairs) == expected


@pytest.mark.parametrize(
    ("vm", "network", "codes"),
    [
        ("vm1", "podnet", []),
        ("vm1", "random_net", ["name_differs"]),
        (LONG, "network", ["name_cut"]),
        ("v" * 252, "net", ["name_impossible", "name_cut"]),
        ("", "", ["name_impossible", "name_differs"]),
    ],
)
def test_what_is_odd_about_a_name(vm: str, network: str, codes: list[str]) -> None:
    assert [problem.code for problem in ipamclaim.name_problems(vm, network)] == codes


@pytest.mark.parametrize(
    ("name", "network", "vm"),
    [
        ("vm1.blue", "blue", "vm1"),
        ("a.b.cluster.udn.prod", "cluster_udn_prod", "a.b"),
        ("vm1.cluster_udn_prod", "cluster_udn_prod", "vm1"),
        ("vm1.podnet", "cluster_udn_prod", "vm1"),
        ("a.b.podnet", "cluster_udn_prod", "a.b"),
        ("v" * 250 + ".po", "cluster_udn_prod", ""),
        (".blue", "blue", ""),
        ("blue", "blue", ""),
        ("vm1", "", ""),
        ("vm1.x", "", ""),
    ],
)
def test_the_vm_of_a_name(name: str, network: str, vm: str) -> None:
    assert ipamclaim.vm_of(name, network) == vm


@pytest.mark.parametrize(
    ("name", "vm", "networks", "expected"),
    [
        ("vm1.podnet", "vm1", [], True),
        ("vm1.podnet", "vm1", ["podnet", "other"], True),
        ("vm1.blue", "vm1", ["podnet"], False),
        ("vm2.podnet", "vm1", [], False),
        ("vm1", "vm1", [], False),
        ("a.b.c", "a.b", [], True),
        ("a.b.c", "a", [], True),
        (LONG + ".ne", LONG, ["net-one"], True),
        ("v" * 253, "v" * 253 + "x", [], True),
    ],
)
def test_whether_a_name_may_be_a_vms(
    name: str, vm: str, networks: list[str], expected: bool
) -> None:
    assert ipamclaim.is_name_of(name, vm, networks) is expected


# --- IPAMClaims are read in every form, and what is wrong in one of them is said of that one ------
def manifest(*, status: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    metadata = {"name": "vm1.blue", "namespace": "blue", "uid": "u-1"} | spec.pop("metadata", {})
    return {
        "apiVersion": "k8s.cni.cncf.io/v1alpha1",
        "kind": "IPAMClaim",
        "metadata": metadata,
        "spec": {"network": "cluster_udn_blue", "interface": ""} | spec,
        "status": status or {},
    }


def owner(kind: str, name: str, uid: str, group: str = "kubevirt.io/v1") -> dict[str, Any]:
    return {"apiVersion": group, "kind": kind, "name": name, "uid": uid}


def test_the_shipped_form() -> None:
    condition = {"type": "IPsAllocated", "status": "True", "reason": "SuccessfulAllocation"}
    claim = ipamclaim.parse(
        manifest(
            metadata={
                "labels": {"kubevirt.io/vm": "vm1"},
                "ownerReferences": [owner("VirtualMachine", "vm1", "vm-uid")],
                "finalizers": ["kubevirt.io/persistent-ipam"],
                "deletionTimestamp": "2026-05-05T10:00:00Z",
            },
            status={
                "ips": ["10.128.0.7/16", "fd00::07/64"],
                "ownerPod": {"name": "virt-launcher-vm1-x"},
                "conditions": [condition],
            },
        )
    )
    assert claim.ips == ("10.128.0.7/16", "fd00::7/64")
    assert (claim.vm, claim.vm_uid, claim.owner_kind) == ("vm1", "vm-uid", "VirtualMachine")
    assert claim.owner_pod == "virt-launcher-vm1-x"
    assert claim.conditions == (condition,)
    assert claim.finalizers == ("kubevirt.io/persistent-ipam",)
    assert claim.deleted_at == datetime(2026, 5, 5, 10, tzinfo=UTC)
    assert (claim.mac, claim.ips_requested, claim.problems) == (None, (), ())


def test_the_decentralized_form_of_the_proposal() -> None:
    claim = ipamclaim.parse(
        manifest(mac="02:03:04:05:06:07", ips=["192.168.1.5"], status={"ownerPod": "launcher"})
    )
    assert (claim.mac, claim.ips_requested) == ("02:03:04:05:06:07", ("192.168.1.5",))
    assert claim.owner_pod == "launcher"


@pytest.mark.parametrize(
    ("metadata", "vm", "uid"),
    [
        ({}, "vm1", ""),
        ({"name": "a.b.cluster.udn.blue"}, "a.b", ""),
        ({"labels": {"kubevirt.io/vm": "vm9"}}, "vm9", ""),
        ({"labels": ["kubevirt.io/vm"]}, "vm1", ""),
        ({"ownerReferences": [owner("Pod", "p", "u", "v1")]}, "vm1", ""),
        ({"ownerReferences": [owner("VirtualMachine", "x", "u", "other.io/v1")]}, "vm1", ""),
        ({"ownerReferences": [owner("VirtualMachineInstance", "x", "u")]}, "x", "u"),
        (
            {"ownerReferences": [owner("VirtualMachineInstance", "x", "i"), owner("VirtualMachine", "x", "u")]},
            "x", "u",
        ),
        ({"ownerReferences": "x"}, "vm1", ""),
    ],
)  # fmt: skip
def test_the_vm_is_the_owner_or_the_label_or_in_the_name(
    metadata: dict[str, Any], vm: str, uid: str
) -> None:
    claim = ipamclaim.parse(manifest(metadata=metadata))
    assert (claim.vm, claim.vm_uid) == (vm, uid)


@pytest.mark.parametrize(
    ("spec", "status", "problems"),
    [
        ({"mac": "nonsense"}, {}, ["spec.mac mac_syntax"]),
        ({"mac": 112233445506}, {}, ["spec.mac wrong_type"]),
        ({"ips": ["10.0.0.300"]}, {}, ["spec.ips.0 not_an_address"]),
        ({"ips": ["10.0.0.5/33"]}, {}, ["spec.ips.0 prefix_length"]),
        ({"ips": ["10.0.0.5/024"]}, {}, ["spec.ips.0 prefix_length"]),
        ({"ips": [None]}, {}, ["spec.ips.0 wrong_type"]),
        ({"ips": "10.0.0.5"}, {}, ["spec.ips wrong_type"]),
        ({"ips": ["10.0.0.5", "10.0.0.6"]}, {}, ["spec.ips one_per_family"]),
        ({}, {"ips": ["010.0.0.5/24"]}, ["status.ips.0 leading_zero"]),
        ({}, {"ips": ["10.0.0.5/24", "10.0.0.6/24"]}, []),
        ({"interface": 7}, {}, ["spec.interface wrong_type"]),
        ({"mac": ""}, {"ownerPod": 7, "conditions": "x"}, []),
    ],
)
def test_a_part_that_says_nothing_is_told_and_the_rest_is_taken_in(
    spec: dict[str, Any], status: dict[str, Any], problems: list[str]
) -> None:
    claim = ipamclaim.parse(manifest(status=status, **spec))
    assert [f"{problem.field} {problem.code}" for problem in claim.problems] == problems
    assert claim.network == "cluster_udn_blue"


@pytest.mark.parametrize("network", [None, "", 7, "x" * 254, "a\0b"])
def test_a_claim_of_no_network_is_refused(network: object) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        ipamclaim.parse(manifest(network=network))
    assert caught.value.problems[0].field == "spec.network"


@pytest.mark.parametrize(
    "broken", [{}, {"spec": []}, {"metadata": None}, {"metadata": {"name": 7}}]
)
def test_what_is_no_claim_is_refused(broken: dict[str, Any]) -> None:
    with pytest.raises(errors.InvalidInput):
        ipamclaim.parse(broken)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.5", "10.0.0.5/24"),
        ("10.0.0.5/16", "10.0.0.5/16"),
        ("fd00::5", "fd00::5/64"),
        ("10.9.0.5", "10.9.0.5/32"),
    ],
)
def test_addresses_get_the_prefix_length_of_their_subnet(text: str, expected: str) -> None:
    subnets = [ip_network("10.0.0.0/24"), ip_network("fd00::/64")]
    assert ipamclaim.with_prefix(text, subnets) == expected


# --- The status of a claim in the words of the cluster's own definition ---------------------------
CRDS = pathlib.Path(__file__).parents[1] / "kube" / "crds"
NOW = datetime(2026, 5, 13, 11, 56, tzinfo=UTC)
LATER = datetime(2026, 5, 14, tzinfo=UTC)
OTHER = {"type": "Ready", "status": "True", "reason": "X", "message": "", "lastTransitionTime": "t"}


def schema(name: str) -> dict[str, Any]:
    document = yaml.safe_load((CRDS / f"{name}.yaml").read_text())
    json_schema: dict[str, Any] = document["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    return json_schema


SHIPPED = words.dialect(schema("k8s.cni.cncf.io_ipamclaims"))
SPEC = words.dialect(schema("k8s.cni.cncf.io_ipamclaims.proposal"))


def test_dialects_are_told_by_the_schema() -> None:
    shipped = (SHIPPED.condition, SHIPPED.pod_is_object, SHIPPED.spec_mac, SHIPPED.spec_ips)
    assert shipped == ("IPsAllocated", True, False, False)
    spec = (SPEC.condition, SPEC.pod_is_object, SPEC.spec_mac, SPEC.spec_ips)
    assert spec == ("IPAllocated", False, True, True)
    assert words.dialect(None) == words.SHIPPED
    bare = words.dialect({"properties": {"status": {"properties": {"ips": {}}}}})
    assert (bare.has_conditions, bare.has_owner_pod) == (False, False)
    assert words.render_status(["10.0.0.5/24"], "pod", [OTHER], bare) == {"ips": ["10.0.0.5/24"]}


@pytest.mark.parametrize(
    ("outcome", "shipped", "spec"),
    [
        (ClaimOutcome.ALLOCATED, "SuccessfulAllocation", "SuccessfulAllocation"),
        (ClaimOutcome.IP_CONFLICT, "IPAddressConflict", "IPAlreadyExists"),
        (ClaimOutcome.MAC_CONFLICT, "MACAddressConflict", "MACAlreadyExists"),
        (ClaimOutcome.EXHAUSTED, "SubnetExhausted", "SubnetExhausted"),
        (ClaimOutcome.ERROR, "InternalError", "InternalError"),
    ],
)
def test_outcomes_in_both_dialects(outcome: ClaimOutcome, shipped: str, spec: str) -> None:
    for dialect, reason in ((SHIPPED, shipped), (SPEC, spec)):
        condition = words.condition(outcome, "because", dialect)
        assert condition["type"] == dialect.condition
        assert condition["reason"] == reason
        assert condition["status"] == ("True" if outcome is ClaimOutcome.ALLOCATED else "False")
        assert words.outcome_of(condition) is outcome


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        (None, None),
        ({"type": "IPsAllocated", "status": "Unknown"}, None),
        ({"type": "IPsAllocated", "status": "False", "reason": "Whatever"}, ClaimOutcome.ERROR),
        ({"type": "IPsAllocated", "status": "False", "reason": "SuccessfulAllocation"}, ClaimOutcome.ERROR),
        ({"type": "IPsAllocated", "status": "True", "reason": "IPAlreadyExists"}, ClaimOutcome.ALLOCATED),
    ],
)  # fmt: skip
def test_a_condition_is_read_by_its_status_first(
    condition: Any, expected: ClaimOutcome | None
) -> None:
    assert words.outcome_of(condition) is expected


def test_the_time_moves_with_the_status_alone_and_others_types_stay() -> None:
    failed = words.condition(ClaimOutcome.IP_CONFLICT, "no", SPEC)
    first = words.merge_conditions([OTHER], failed, now=NOW)
    assert first == [OTHER, failed | {"lastTransitionTime": "2026-05-13T11:56:00Z"}]
    again = words.condition(ClaimOutcome.EXHAUSTED, "full", SPEC)
    second = words.merge_conditions(first, again, now=LATER)
    assert second[1]["lastTransitionTime"] == "2026-05-13T11:56:00Z"
    assert second[1]["reason"] == "SubnetExhausted"
    third = words.merge_conditions(
        second, words.condition(ClaimOutcome.ALLOCATED, "ok", SPEC), now=LATER
    )
    assert third[1]["lastTransitionTime"] == "2026-05-14T00:00:00Z"
    assert third[0] == OTHER


def test_the_condition_of_the_other_dialect_goes() -> None:
    before = words.merge_conditions([], words.condition(ClaimOutcome.ERROR, "x", SHIPPED), now=NOW)
    after = words.merge_conditions(
        before, words.condition(ClaimOutcome.ERROR, "x", SPEC), now=LATER
    )
    assert [item["type"] for item in after] == ["IPAllocated"]
    assert words.matches(
        words.allocation_condition(after), words.condition(ClaimOutcome.ERROR, "x", SPEC)
    )
    assert not words.matches(
        words.allocation_condition(after), words.condition(ClaimOutcome.ERROR, "y", SPEC)
    )
