"""VirtualMachines and VirtualMachineInstances get the annotation of their cluster's settings."""

import json
from typing import Any

import pytest

from claims.core.workloads.network_selection import ADDRESSES, DEFAULT_NETWORK
from claims.models import Decision, IPPool, NetworkSettings
from tests.claims import worlds
from tests.claims.webhooks.doors import Door, review, world
from tests.core.vm_world import MAC, Manifest, vm_manifest

VMI = "VirtualMachineInstance"


@pytest.fixture
def pool() -> IPPool:
    result = world()
    worlds.entry(result, MAC, "10.0.0.5/16")
    return result


@pytest.fixture
def door(pool: IPPool) -> Door:
    NetworkSettings.objects.create(cluster=pool.cluster, annotation="addresses")
    return Door(pool.cluster, "mutate-vms")


def _annotations(stored: Manifest) -> Any:
    if stored["kind"] == "VirtualMachine":
        stored = stored["spec"]["template"]
    return {key: json.loads(text) for key, text in stored["metadata"]["annotations"].items()}


@pytest.mark.parametrize("kind", ["VirtualMachine", VMI])
def test_bare_addresses(door: Door, kind: str) -> None:
    stored = door.mutated(vm_manifest(kind=kind))
    assert _annotations(stored) == {ADDRESSES: {"podnet": ["10.0.0.5"]}}
    decision = Decision.objects.get()
    assert (decision.code, decision.path, decision.vm, decision.namespace) == (
        "patched", "mutate-vms", "vm-server", "blue"
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["VirtualMachine", VMI])
def test_the_element_of_the_proposal(door: Door, kind: str) -> None:
    NetworkSettings.objects.update(annotation="default-network")
    element = {
        "name": "default",
        "namespace": "ovn-kubernetes",
        "mac": MAC,
        "ips": ["10.0.0.5/16"],
    }
    stored = door.mutated(vm_manifest(kind=kind))
    assert _annotations(stored) == {DEFAULT_NETWORK: [element]}


def test_an_update_is_told_the_same_and_leaves_no_line_when_nothing_is_new(door: Door) -> None:
    old = vm_manifest()
    stored = door.mutated(vm_manifest(), old)
    assert _annotations(stored) == {ADDRESSES: {"podnet": ["10.0.0.5"]}}
    again = door.ask(stored, stored)
    assert again == {"uid": again["uid"], "allowed": True}
    unknown = vm_manifest("other", mac="02:00:00:00:00:77")
    assert "warnings" not in door.ask(unknown, unknown)
    assert [decision.code for decision in Decision.objects.all()] == ["patched"]


def test_a_vm_that_is_named_later(door: Door) -> None:
    unnamed = vm_manifest()
    unnamed["metadata"] = {"generateName": "vm-", "namespace": "blue"}
    stored = door.mutated(unnamed, name="")
    assert _annotations(stored) == {ADDRESSES: {"podnet": ["10.0.0.5"]}}


def test_a_manifest_of_nothing(door: Door) -> None:
    empty = {"kind": "VirtualMachine", "metadata": {"name": "vm-server"}, "spec": None}
    assert "patch" not in door.ask(empty)


def test_other_resources(door: Door) -> None:
    document = review(vm_manifest())
    document["request"]["resource"]["resource"] = "virtualmachineinstancereplicasets"
    assert door.post(document).status_code == 400
