"""A claim's life: its VM stops, migrates, is replaced, and goes; passes that end in the middle."""

from __future__ import annotations

from typing import Any
from unittest import mock

import pytest

from claims.address_index import index
from claims.ipamclaims import allocation, ingest
from claims.models import IPAMClaim, IPAMClaimEvent, Workload
from pools.clusters.client.api_client import ClusterClient
from pools.clusters.reconcile import apply, storage
from pools.models import ObservedObject
from pools.platform import events
from pools.platform.outbound import faults
from tests.claims import worlds
from tests.claims.ipamclaims.conftest import both
from tests.claims.ipamclaims.world import BY, MAC, SHIPPED, World, manifest
from tests.pools.conftest import Clock


def _gone(world: World, name: str = "vm1.podnet") -> None:
    world.server.remove("ipamclaims", name, "blue")


@pytest.mark.exhaustive
@both
def test_migration_changes_the_owner_pod_and_nothing_else(world: World, definition: str) -> None:
    network = world.network()
    world.claim()
    names = {"vm_uid": "uid-blue-vm1", "pods": ["launcher-a"]}
    running = worlds.workload(network, "vm1", MAC, "10.0.0.3/24", **names)
    world.passed()
    pod: Any = {"name": "launcher-a"} if definition == SHIPPED else "launcher-a"
    assert world.status()["ownerPod"] == pod
    moved = world.status()["conditions"]
    for pods, owner in (
        (["launcher-a", "launcher-b"], "launcher-a"),
        (["launcher-b", "launcher-a"], "launcher-a"),
        (["launcher-b"], "launcher-b"),
    ):
        Workload.objects.filter(pk=running.pk).update(pods=pods)
        world.passed()
        assert world.row().owner_pod == owner
        assert world.status()["ips"] == ["10.0.0.3/24"]
    pod = {"name": "launcher-b"} if definition == SHIPPED else "launcher-b"
    assert world.status()["ownerPod"] == pod
    assert world.status()["conditions"] == moved
    assert world.held() == {"10.0.0.3": "blue/vm1"}
    assert world.passed()["written"] == 0


@pytest.mark.exhaustive
def test_a_vm_that_stops_keeps_its_addresses(world: World) -> None:
    network = world.network()
    world.claim()
    running = worlds.workload(network, "vm1", MAC, "10.0.0.3/24", vm_uid="uid-blue-vm1")
    world.passed()
    with events.recorded_by(BY):
        index.remove(workloads=[running.pk])
        running.delete()
    world.passed()
    assert world.status()["ips"] == ["10.0.0.3/24"]
    assert world.held() == {"10.0.0.3": "blue/vm1"}


@pytest.mark.exhaustive
def test_a_claim_that_is_gone_gives_its_addresses_back_into_the_cooldown(
    world: World, clock: Clock
) -> None:
    world.network(cooldown=3600)
    world.follow_claim()
    _gone(world)
    world.passed()
    assert world.held() == {"10.0.0.3": "blue/vm1"}, "one list without it is no proof"
    clock.advance(storage.GRACE + 1)
    world.passed()
    assert (world.held(), world.cooling()) == ({}, ["10.0.0.3"])
    assert not IPAMClaim.objects.filter(cluster=world.cluster).exists()
    labels = IPAMClaimEvent.objects.order_by("pgh_id").values_list("pgh_label", flat=True)
    assert list(labels) == ["created", "changed", "deleted"]


def test_a_deletion_that_was_told_releases_at_once(world: World) -> None:
    world.network(cooldown=3600)
    world.follow_claim()
    last = world.there()
    _gone(world)
    world.tell(("DELETED", last))
    assert (world.held(), world.cooling()) == ({}, ["10.0.0.3"])


@pytest.mark.exhaustive
def test_a_claim_that_is_being_deleted_keeps_its_addresses(world: World) -> None:
    """Until its finalizer is taken away: the VM may still be running."""
    world.network(cooldown=3600)
    world.follow_claim()
    world.delete()
    with world.unwritten():
        world.passed()
    assert world.row().deleted_at is not None
    assert world.held() == {"10.0.0.3": "blue/vm1"}
    ending = world.there()
    assert ending["metadata"]["finalizers"] == ["kubevirt.io/persistent-ipam"]
    world.let_go()
    world.tell(("DELETED", ending))
    assert (world.held(), world.cooling()) == ({}, ["10.0.0.3"])


@pytest.mark.exhaustive
def test_a_vm_of_the_same_name_is_another_vm(world: World) -> None:
    world.network(cooldown=3600)
    world.follow_claim()
    _gone(world)
    world.follow_claim(uid="another")
    assert world.status()["ips"] == ["10.0.0.4/24"]
    assert world.row().vm_uid == "another"
    assert (world.held(), world.cooling()) == ({"10.0.0.4": "blue/vm1"}, ["10.0.0.3"])


@pytest.mark.exhaustive
def test_a_claim_made_anew_for_the_same_vm_gets_its_addresses_back(world: World) -> None:
    world.network()
    world.claim("vm0")
    world.follow_claim()
    _gone(world)
    world.follow_claim()
    assert world.status()["ips"] == ["10.0.0.4/24"]
    assert world.held()["10.0.0.4"] == "blue/vm1"


@pytest.mark.exhaustive
def test_a_vm_that_comes_back_within_the_cooldown_gets_its_address_back(
    world: World, clock: Clock
) -> None:
    world.network(cooldown=3600)
    world.follow_claim()
    last = world.there()
    _gone(world)
    world.tell(("DELETED", last))
    world.claim("vm2")
    world.follow_claim()
    assert world.held() == {"10.0.0.3": "blue/vm1", "10.0.0.4": "blue/vm2"}


@pytest.mark.exhaustive
@pytest.mark.parametrize("fault", [faults.Forbidden, faults.ServerFault, faults.Unreachable])
def test_a_list_that_fails_releases_nothing(
    world: World, fault: type[faults.ClusterFault], clock: Clock
) -> None:
    world.network()
    world.follow_claim()
    _gone(world)
    with mock.patch.object(ClusterClient, "list", side_effect=fault("no")):
        for _ in range(3):
            world.run()
            clock.advance(600)
    assert world.held() == {"10.0.0.3": "blue/vm1"}


@pytest.mark.exhaustive
def test_nothing_is_granted_before_all_is_known(world: World) -> None:
    """A kind that was seen before and cannot be listed now may hold addresses."""
    world.network()
    world.machine()
    world.passed()
    world.claim()
    with world.without_vms():
        world.run()
        assert (world.held(), world.status()) == ({}, {})
    world.passed()
    assert world.status()["ips"] == ["10.0.0.3/24"]


class Killed(BaseException):
    """The process ends here."""


@pytest.mark.exhaustive
@pytest.mark.parametrize("where", ["granted", "written"])
def test_a_worker_that_is_killed_in_between(
    world: World, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Granted, and the cluster not told; told, and not taken in: the next pass ends the same."""
    world.network()
    world.claim()
    name = "_send_all" if where == "granted" else "_ingest_stored"
    real = getattr(apply, name)

    def dies(context: Any, handler: Any, *rest: Any) -> None:
        if handler is world.handler:
            raise Killed
        real(context, handler, *rest)

    with monkeypatch.context() as patched:
        patched.setattr(apply, name, dies)
        with pytest.raises(Killed):
            world.run()
    assert world.held() == {"10.0.0.3": "blue/vm1"}
    assert bool(world.status()) == (where == "written")
    world.passed()
    assert world.status()["ips"] == ["10.0.0.3/24"]
    assert world.held() == {"10.0.0.3": "blue/vm1"}
    assert world.passed()["written"] == 0


@pytest.mark.exhaustive
def test_a_claim_that_breaks_an_answer_fails_alone(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rule `bad-object-fails-alone`."""
    world.network()
    for number in range(3):
        world.claim(f"vm{number}")
    real = allocation.grant_addresses

    def poisoned(claims: Any, *args: Any, **more: Any) -> int:
        if any(claim.vm == "vm1" for claim in claims):
            raise KeyError("bug")
        return real(claims, *args, **more)

    monkeypatch.setattr(allocation, "grant_addresses", poisoned)
    world.passed()
    assert set(world.held().values()) == {"blue/vm0", "blue/vm2"}
    assert world.condition("vm1.podnet")[2] == "InternalError"


def test_many_are_taken_in_with_few_statements(
    world: World, django_assert_max_num_queries: Any
) -> None:
    world.network("10.0.0.0/16")
    manifests = [manifest(f"vm{n}", status={"ips": [f"10.0.1.{n}/16"]}) for n in range(1, 201)]
    result = [world.handler.parse(item) for item in manifests]
    with django_assert_max_num_queries(40), events.recorded_by(BY):
        ingest.ingest_claims(world.cluster, result, claims_managed=False)
    assert IPAMClaim.objects.count() == 200
    assert len(world.held()) == 200
    assert not ObservedObject.objects.exists()
