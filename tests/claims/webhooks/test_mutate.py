"""What the webhooks add to pods and VMs of a cluster."""

import json
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from claims.core import ippool
from claims.core.workloads.network_selection import ADDRESSES, DEFAULT_NETWORK
from claims.entries import ippool_writes
from claims.models import NAD, Decision, Entry, IPPool, Network, NetworkSettings
from pools.models import Now
from tests.claims import worlds
from tests.claims.webhooks.doors import Door, bring, review, see, world
from tests.core.vm_world import MAC, Manifest, pod, vm_manifest

OTHER = "02:00:00:00:00:99"
VMI = "VirtualMachineInstance"
INFRASTRUCTURE = {"infrastructure_subnets": ["10.0.9.0/28"]}


def _element(stored: Manifest) -> Any:
    (result,) = json.loads(stored["metadata"]["annotations"][DEFAULT_NETWORK])
    return result


def _code() -> str:
    return Decision.objects.latest("pk").code


@pytest.mark.sample(5)
@pytest.mark.parametrize(
    ("address", "network", "why"),
    [
        ("10.0.0.2", {}, "the management port of the network"),
        ("10.0.0.1", {"default_gateways": ["10.0.0.2"]}, "the management port of the network"),
        ("10.0.9.5", INFRASTRUCTURE, "in the infrastructure subnet 10.0.9.0/28"),
        ("10.0.9.0", INFRASTRUCTURE, "the gateway of the network"),
        ("10.0.9.5", {"exclude_subnets": ["10.0.9.0/28"]}, "in the excluded subnet 10.0.9.0/28"),
    ],
)
def test_what_the_network_keeps_is_written_into_no_pod(
    pool: IPPool, door: Door, address: str, network: Manifest, why: str
) -> None:
    """OVN-Kubernetes would refuse it, and the VM would not start."""
    Network.objects.filter(pk=pool.network_id).update(**network)
    Entry.objects.update(ips=[f"{address}/16"])
    see(door.cluster, vm_manifest())
    assert "patch" not in door.ask(pod())
    decision = Decision.objects.latest("pk")
    assert decision.code == "unusable_address"
    assert f"has {address}, which is {why}" in decision.message


def test_asking_twice_is_the_same_and_once_more_changes_nothing(door: Door) -> None:
    first = door.ask(pod())
    assert door.ask(pod()) == first
    assert "patch" not in door.ask(door.mutated(pod()))
    assert _code() == "unchanged"


def test_by_the_mac_of_the_vmi_of_the_pod(pool: IPPool, door: Door) -> None:
    """A VMI that ran before, and a VM that was changed since, say less."""
    worlds.entry(pool, OTHER, "10.0.0.9/16")
    see(door.cluster, vm_manifest(kind=VMI, mac=MAC), uid="old")
    see(door.cluster, vm_manifest(mac=MAC))
    see(door.cluster, vm_manifest(kind=VMI, mac=OTHER), uid="new")
    owner = [{"kind": VMI, "uid": "new", "name": "vm-server"}]
    assert _element(door.mutated(pod(ownerReferences=owner)))["mac"] == OTHER
    assert _element(door.mutated(pod()))["mac"] == MAC


def test_by_the_mac_that_the_pod_asks_for(pool: IPPool, door: Door) -> None:
    worlds.entry(pool, OTHER, "10.0.0.9/16")
    element = f'[{{"name":"default","mac":"{OTHER}"}}]'
    asking = pod("another", annotations={DEFAULT_NETWORK: element})
    assert _element(door.mutated(asking))["ips"] == ["10.0.0.9/16"]
    see(door.cluster, vm_manifest("another", mac=None))
    assert _element(door.mutated(asking))["ips"] == ["10.0.0.9/16"]
    assert _code() == "completed"


def test_the_request_of_a_claim_and_what_it_was_granted(pool: IPPool, door: Door) -> None:
    asks = {"mac": OTHER, "ips_requested": ["10.0.0.7/16"]}
    ipamclaim = worlds.claim(pool.network, "another", **asks, name="another.net")
    element = _element(door.mutated(pod("another")))
    assert (element["mac"], element["ips"]) == (OTHER, ["10.0.0.7/16"])
    assert element["ipam-claim-reference"] == "another.net"
    ipamclaim.ips = ["10.0.0.70/16"]
    ipamclaim.save()
    assert _element(door.mutated(pod("another")))["ips"] == ["10.0.0.70/16"]


def test_an_entry_that_cannot_be_used(pool: IPPool, door: Door) -> None:
    """It stands in the object, and the register could not take it in."""
    parsed = ippool.ParsedIPPool(pool.name, pool.network.name, ((OTHER, ["10.9.0.5/16"]),))
    values = {"uid": "u", "register_decides": False}
    ippool_writes.upsert_ippool(pool.cluster, parsed, **values, author=worlds.BY)
    see(door.cluster, vm_manifest(mac=OTHER))
    response = door.ask(pod())
    assert "patch" not in response
    assert _code() == "unusable_entry"
    assert "10.9.0.5 is in none of the network's subnets (10.0.0.0/16)" in response["warnings"][0]


@pytest.mark.parametrize(
    ("model", "values", "code"),
    [
        (NAD, {"role": "secondary"}, "nad_missing"),
        (Network, {"gone_at": Now()}, "nad_missing"),
        (IPPool, {"gone_at": Now()}, "no_entry"),
    ],
)
def test_what_is_gone_or_not_primary_gives_no_address(
    door: Door, model: Any, values: Manifest, code: str
) -> None:
    model.objects.update(**values)
    assert "patch" not in door.ask(pod())
    assert _code() == code


def test_secondary_networks_beside_the_primary_one(door: Door) -> None:
    bring(worlds.network("secondary", subnets=("10.9.0.0/16",)), role="secondary")
    assert _element(door.mutated(pod()))["ips"] == ["10.0.0.5/16"]


def test_another_namespace_and_another_cluster(door: Door) -> None:
    quiet = door.ask(pod(), namespace="green")
    assert quiet == {"uid": quiet["uid"], "allowed": True}
    assert _code() == "no_primary_network"
    elsewhere = Door(worlds.cluster("east"))
    assert "patch" not in elsewhere.ask(pod())


@pytest.mark.parametrize("labels", [{}, {"app": "web"}, {"kubevirt.io": "virt-handler"}])
def test_other_pods(door: Door, labels: Manifest) -> None:
    with CaptureQueriesContext(connection) as queries:
        response = door.ask(pod(labels=labels, annotations={DEFAULT_NETWORK: "nonsense"}))
    assert response == {"uid": response["uid"], "allowed": True}
    assert not Decision.objects.exists()
    assert len([query for query in queries if "claims_" in query["sql"]]) == 0


def test_by_the_settings_of_the_cluster(door: Door) -> None:
    nad = {"default_nad_namespace": "openshift-ovn-kubernetes", "default_nad_name": "other"}
    settings = NetworkSettings.objects.create(cluster=door.cluster, **nad)
    element = _element(door.mutated(pod()))
    assert (element["namespace"], element["name"]) == ("openshift-ovn-kubernetes", "other")
    settings.annotation = "addresses"
    settings.save()
    assert "patch" not in door.ask(pod())
    assert _code() == "left_to_ipam_extensions"


def test_a_row_that_nobody_expects_blocks_nobody(door: Door) -> None:
    Entry.objects.update(ips=["nonsense"])
    response = door.ask(pod())
    assert "patch" not in response
    assert "internal error of Cadastre" in response["warnings"][0]
    assert _code() == "unexpected"


def test_few_statements_each_by_an_index(pool: IPPool, door: Door) -> None:
    see(door.cluster, vm_manifest())
    with connection.cursor() as cursor:
        cursor.execute(_MANY, [pool.pk])
        cursor.execute("ANALYZE claims_entry")
    with CaptureQueriesContext(connection) as queries:
        door.ask(pod())
    reads = [query["sql"] for query in queries if query["sql"].startswith("SELECT")]
    assert len(reads) <= 8  # limits twice, the caller, and five of the VM
    plans = [_plan(read) for read in reads]
    (entries,) = (plan for plan in plans if "on claims_entry" in plan)
    assert "entry_vm" in entries
    assert "entry_mac" in entries  # both sides of the OR


_MANY = """
    INSERT INTO claims_entry (ippool_id, mac, ips, vm, namespace, source, note, created_at)
    SELECT %s, ('0200000000' || lpad(to_hex(n), 2, '0'))::macaddr, '{10.0.9.9/16}', 'vm-' || n, 'blue',
      'hand', '', now()
    FROM generate_series(8, 250) AS n, generate_series(1, 8)
"""


def _plan(statement: str) -> str:
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN {statement}".replace("%", "%%"), ())
        return "\n".join(line for (line,) in cursor.fetchall())


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", "json_syntax"),
        ({}, "unsupported_kind"),
        (review(vm_manifest()), "unsupported_kind"),
        (review(pod(), object=None), "required"),
        (review(pod(), namespace=7), "wrong_type"),
        (review(pod(), dryRun="yes"), "wrong_type"),
    ],
)
def test_what_is_no_review(door: Door, body: Any, code: str) -> None:
    answer = door.post(body)
    assert (answer.status_code, answer.json()["code"]) == (400, code)


def test_unknown_callers(door: Door) -> None:
    body = json.dumps(review(pod()))
    for path in (door.path.replace(door.key, "cadw_x"), door.path.replace(f"{door.key}/", "")):
        assert Client().post(path, body, content_type="application/json").status_code == 403


def test_a_claim_of_the_vm_whatever_its_name(pool: IPPool, door: Door) -> None:
    """One called after the network, beside that of ipam-extensions; and an odd one alone."""
    see(door.cluster, vm_manifest("another", mac=OTHER))
    worlds.claim(pool.network, "another", name="another.podnet", uid="a")
    odd = {"ips_requested": ["10.0.0.7/16"], "name": "another.odd-name"}
    imported = worlds.claim(pool.network, "another", **odd, uid="b")
    for name in ("another.podnet", "another.odd-name"):
        element = _element(door.mutated(pod("another")))
        assert (element["ips"], element["ipam-claim-reference"]) == (["10.0.0.7/16"], name)
        type(imported).objects.filter(name="another.podnet").delete()


# --- VirtualMachines and VirtualMachineInstances get the annotation of their cluster's settings
@pytest.fixture
def vm_pool() -> IPPool:
    result = world()
    worlds.entry(result, MAC, "10.0.0.5/16")
    return result


@pytest.fixture
def vm_door(vm_pool: IPPool) -> Door:
    NetworkSettings.objects.create(cluster=vm_pool.cluster, annotation="addresses")
    return Door(vm_pool.cluster, "mutate-vms")


def _annotations(stored: Manifest) -> Any:
    if stored["kind"] == "VirtualMachine":
        stored = stored["spec"]["template"]
    return {key: json.loads(text) for key, text in stored["metadata"]["annotations"].items()}


@pytest.mark.parametrize("kind", ["VirtualMachine", VMI])
def test_bare_addresses(vm_door: Door, kind: str) -> None:
    stored = vm_door.mutated(vm_manifest(kind=kind))
    assert _annotations(stored) == {ADDRESSES: {"podnet": ["10.0.0.5"]}}
    decision = Decision.objects.get()
    assert (decision.code, decision.path, decision.vm, decision.namespace) == (
        "patched", "mutate-vms", "vm-server", "blue"
    )  # fmt: skip


@pytest.mark.parametrize("kind", ["VirtualMachine", VMI])
def test_the_element_of_the_proposal(vm_door: Door, kind: str) -> None:
    NetworkSettings.objects.update(annotation="default-network")
    element = {"name": "default", "namespace": "ovn-kubernetes", "mac": MAC, "ips": ["10.0.0.5/16"]}
    stored = vm_door.mutated(vm_manifest(kind=kind))
    assert _annotations(stored) == {DEFAULT_NETWORK: [element]}


def test_an_update_is_told_the_same_and_leaves_no_line_when_nothing_is_new(vm_door: Door) -> None:
    old = vm_manifest()
    stored = vm_door.mutated(vm_manifest(), old)
    assert _annotations(stored) == {ADDRESSES: {"podnet": ["10.0.0.5"]}}
    again = vm_door.ask(stored, stored)
    assert again == {"uid": again["uid"], "allowed": True}
    unknown = vm_manifest("other", mac="02:00:00:00:00:77")
    assert "warnings" not in vm_door.ask(unknown, unknown)
    assert [decision.code for decision in Decision.objects.all()] == ["patched"]


def test_a_vm_that_is_named_later(vm_door: Door) -> None:
    unnamed = vm_manifest()
    unnamed["metadata"] = {"generateName": "vm-", "namespace": "blue"}
    stored = vm_door.mutated(unnamed, name="")
    assert _annotations(stored) == {ADDRESSES: {"podnet": ["10.0.0.5"]}}


def test_a_manifest_of_nothing(vm_door: Door) -> None:
    empty = {"kind": "VirtualMachine", "metadata": {"name": "vm-server"}, "spec": None}
    assert "patch" not in vm_door.ask(empty)


def test_other_resources(vm_door: Door) -> None:
    document = review(vm_manifest())
    document["request"]["resource"]["resource"] = "virtualmachineinstancereplicasets"
    assert vm_door.post(document).status_code == 400
