"""What VirtualMachines and VirtualMachineInstances are told of their addresses."""

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st

from claims.core.workloads import mutation
from claims.core.workloads.mutation import MutationOutcome, Settings
from claims.core.workloads.network_selection import ADDRESSES, DEFAULT_NETWORK
from claims.core.workloads.vm_addresses import Registrations
from tests.core.vm_world import MAC, Manifest, entry, patched, registrations, vm_manifest

BARE = Settings(addresses=True)


def _decide(manifest: Manifest, what: Registrations | None = None, **more: Any) -> MutationOutcome:
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
    outcome = _decide(manifest)
    assert outcome.code == "completed"
    expected = {"other": ["192.0.2.1"], "podnet": ["10.0.0.5"]}
    assert _annotations(manifest, outcome) == {ADDRESSES: expected}


@pytest.mark.parametrize("operation", ["CREATE", "UPDATE"])
def test_what_the_owner_wrote_stays(operation: str) -> None:
    manifest = vm_manifest(annotations={ADDRESSES: '{"podnet":["10.0.0.9"]}'})
    outcome = _decide(manifest, operation=operation)
    assert (outcome.code, outcome.patch) == ("kept_foreign", None)
    assert "10.0.0.9 and is kept" in outcome.warnings[0]
    manifest = vm_manifest(annotations={DEFAULT_NETWORK: '[{"name":"default","mac":"02::"}]'})
    assert _decide(manifest, settings=Settings()).code == "malformed_annotation"


def test_without_a_mac_in_the_vm() -> None:
    what = registrations(entry(vm="vm-server", namespace="blue"))
    outcome = _decide(vm_manifest(mac=None), what)
    assert outcome.code == "patched"
    assert f"set macAddress {MAC} in the VM's interface" in outcome.warnings[1]


@pytest.mark.parametrize("annotations", [[], "text", 5])
def test_annotations_that_are_no_object(annotations: Any) -> None:
    manifest = vm_manifest()
    manifest["spec"]["template"]["metadata"] = {"annotations": annotations}
    outcome = _decide(manifest)
    assert (outcome.code, outcome.patch) == ("malformed_annotation", None)


@pytest.mark.parametrize("text", ["[]", "{", '{"podnet": "10.0.0.5"}', '{"podnet": [5]}', " "])
def test_malformed_addresses(text: str) -> None:
    outcome = _decide(vm_manifest(annotations={ADDRESSES: text}))
    assert (outcome.code, outcome.patch) == ("malformed_annotation", None)


_ANY = st.recursive(
    st.none() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["metadata", "annotations", "spec", "template", "kind", "networks", "pod", "name",
             "domain", "devices", "interfaces", "macAddress"]
        ),
        inner,
    ),
)  # fmt: skip


@given(_ANY, st.booleans())
def test_nothing_is_raised(manifest: Any, addresses: bool) -> None:
    assert _decide(manifest, settings=Settings(addresses=addresses)).code
