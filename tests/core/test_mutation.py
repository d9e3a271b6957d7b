"""What the webhooks add to pods and VMs."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from claims.core.workloads import mutation
from claims.core.workloads.mutation import UPDATE, MutationOutcome, Settings
from claims.core.workloads.network_selection import ADDRESSES, CLAIM, DEFAULT_NETWORK
from claims.core.workloads.vm_addresses import Registrations
from tests.core.any_json import any_json
from tests.core.vm_world import (
    MAC,
    Manifest,
    entry,
    patched,
    pod,
    registrations,
    vm,
    vm_manifest,
)

OURS = {
    "name": "default",
    "namespace": "ovn-kubernetes",
    "mac": MAC,
    "ips": ["10.0.0.5/16"],
    "ipam-claim-reference": "vm-server.podnet",
}


def _decide(manifest: Manifest, what: Registrations | None = None, **more: Any) -> MutationOutcome:
    settings = more.pop("settings", Settings())
    who = more.pop("who", vm())
    return mutation.decide_pod(manifest, who, what or registrations(entry()), settings, **more)


def _with(*elements: Any) -> Manifest:
    return pod(annotations={DEFAULT_NETWORK: json.dumps(elements)})


def _element(manifest: Manifest, outcome: MutationOutcome) -> Any:
    (result,) = json.loads(
        patched(manifest, outcome.patch)["metadata"]["annotations"][DEFAULT_NETWORK]
    )
    return result


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
@pytest.mark.parametrize(
    "without", [["ips"], ["mac", "ips"], ["ipam-claim-reference"], ["namespace", "ips"]]
)
def test_what_is_missing_is_added(without: list[str], operation: str) -> None:
    """What ipam-extensions has written before, and VMs by the flow of the proposal."""
    there = {key: value for key, value in OURS.items() if key not in without}
    outcome = _decide(_with(there), operation=operation)
    assert outcome.code == "completed"
    assert _element(_with(there), outcome) == OURS


def test_members_of_others_stay() -> None:
    there = {**OURS, "ips": None, "interface": "eth0", "ipam-claim-reference": "theirs"}
    element = _element(_with(there), _decide(_with(there)))
    assert element == {**there, "ips": OURS["ips"]}


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
@pytest.mark.parametrize(
    "theirs",
    [
        {"ips": ["10.0.0.6/16"]},
        {"mac": "02:00:00:00:00:01"},
        {"name": "isolated"},
        {"namespace": "elsewhere"},
    ],
)
def test_what_is_there_is_never_overwritten(theirs: Manifest, operation: str) -> None:
    outcome = _decide(_with({**OURS, **theirs}), operation=operation)
    assert (outcome.code, outcome.patch) == ("kept_foreign", None)
    assert next(iter(theirs)) in outcome.warnings[0]


@pytest.mark.parametrize(
    "text", ["{", "[]", "{}", json.dumps([OURS, OURS]), "default", '[{"name":"a","x":1}]', ""]
)
def test_a_malformed_annotation_is_left_alone(text: str) -> None:
    outcome = _decide(pod(annotations={DEFAULT_NETWORK: text}))
    assert (outcome.code, outcome.patch) == ("malformed_annotation", None)
    assert DEFAULT_NETWORK in outcome.warnings[0]


@pytest.mark.parametrize("ips", [["10.0.0.5/16"], ["10.0.0.5"]])
def test_an_element_of_the_owner_gets_the_claim(ips: list[str]) -> None:
    """No entry and no claim: what the owner asks for stays as it is written."""
    there = {"name": "default", "namespace": "ovn-kubernetes", "mac": MAC, "ips": ips}
    outcome = _decide(_with(there), registrations())
    assert outcome.code == "completed"
    assert _element(_with(there), outcome) == there | {CLAIM: "vm-server.podnet"}


@pytest.mark.parametrize(
    ("there", "code"),
    [
        ({"ips": ["10.9.0.5/16"]}, "outside_subnet"),
        ({"ips": ["10.0.0.1/16"]}, "unusable_address"),
        ({"ips": ["10.0.0.5/16", "10.0.0.6/16"]}, "too_many_addresses"),
        ({"mac": MAC}, "no_entry"),
    ],
)
def test_an_element_of_the_owner_that_cannot_be_completed(there: Manifest, code: str) -> None:
    there = {"name": "default", "namespace": "ovn-kubernetes", **there}
    outcome = _decide(_with(there), registrations())
    assert (outcome.code, outcome.patch) == (code, None)


@given(
    any_json(f"metadata annotations labels {DEFAULT_NETWORK} spec"),
    st.sampled_from(["CREATE", UPDATE]),
)
def test_nothing_is_raised(manifest: Any, operation: str) -> None:
    mutation.launcher_vm(manifest, "blue")
    assert mutation.decide_pod(manifest, vm(), registrations(entry()), Settings(), operation).code


# --- What VirtualMachines and VirtualMachineInstances are told of their addresses -----------------
BARE = Settings(addresses=True)


def _decide_vm(
    manifest: Manifest, what: Registrations | None = None, **more: Any
) -> MutationOutcome:
    settings = more.pop("settings", BARE)
    who = mutation.parse_vm(manifest, "blue")
    return mutation.decide_vm(manifest, who, what or registrations(entry()), settings, **more)


def _annotations(manifest: Manifest, outcome: MutationOutcome) -> Manifest:
    template = patched(manifest, outcome.patch)
    if template["kind"] == "VirtualMachine":
        template = template["spec"]["template"]
    return {key: json.loads(value) for key, value in template["metadata"]["annotations"].items()}


def test_other_interfaces_stay() -> None:
    manifest = vm_manifest(annotations={ADDRESSES: '{"other":["192.0.2.1"]}'})
    outcome = _decide_vm(manifest)
    assert outcome.code == "completed"
    expected = {"other": ["192.0.2.1"], "podnet": ["10.0.0.5"]}
    assert _annotations(manifest, outcome) == {ADDRESSES: expected}


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_what_the_owner_wrote_stays(operation: str) -> None:
    manifest = vm_manifest(annotations={ADDRESSES: '{"podnet":["10.0.0.9"]}'})
    outcome = _decide_vm(manifest, operation=operation)
    assert (outcome.code, outcome.patch) == ("kept_foreign", None)
    assert "10.0.0.9 and is kept" in outcome.warnings[0]
    manifest = vm_manifest(annotations={DEFAULT_NETWORK: '[{"name":"default","mac":"02::"}]'})
    assert _decide_vm(manifest, settings=Settings()).code == "malformed_annotation"


def test_without_a_mac_in_the_vm() -> None:
    what = registrations(entry(vm="vm-server", namespace="blue"))
    outcome = _decide_vm(vm_manifest(mac=None), what)
    assert outcome.code == "patched"
    assert f"set macAddress {MAC} in the VM's interface" in outcome.warnings[1]


@pytest.mark.parametrize("annotations", [[], "text", 5])
def test_annotations_that_are_no_object(annotations: Any) -> None:
    manifest = vm_manifest()
    manifest["spec"]["template"]["metadata"] = {"annotations": annotations}
    outcome = _decide_vm(manifest)
    assert (outcome.code, outcome.patch) == ("malformed_annotation", None)


@pytest.mark.parametrize("text", ["[]", "{", '{"podnet": "10.0.0.5"}', '{"podnet": [5]}', " "])
def test_malformed_addresses(text: str) -> None:
    outcome = _decide_vm(vm_manifest(annotations={ADDRESSES: text}))
    assert (outcome.code, outcome.patch) == ("malformed_annotation", None)


_ANY_VM = any_json("""
    metadata annotations spec template kind networks pod name domain devices interfaces macAddress
""")


@given(_ANY_VM, st.booleans())
def test_nothing_is_raised_for_a_vm(manifest: Any, addresses: bool) -> None:
    assert _decide_vm(manifest, settings=Settings(addresses=addresses)).code
