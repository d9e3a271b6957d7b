"""Pools that are made anew, refused by a webhook, or of a server that is down."""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_network
from typing import Any

import pytest

from pools.cilium.ciliumpodippools import CiliumPodIPPools
from pools.clusters.reconcile import leases
from pools.core.cilium import podippool
from pools.models import Block, Connection, Drift, ManagedResource, Pool
from pools.register import pools
from pools.webhooks import configuration
from tests import factories
from tests.handlers.cilium_world import CiliumWorld
from tests.handlers.conftest import PROPOSAL, SHIPPED
from tests.handlers.fleet import Fleet, manifest, reserved
from tests.kube import gateways
from tests.kube.fake import FakeCluster
from tests.kube.manifests import Manifest
from tests.pools.conftest import Clock

# A pool whose v2alpha1 object is deleted and made again in v2, while blocks are in use, loses
# nothing
#
# Cilium has no automatic way from v2alpha1 to v2, so that people delete the object and create another one of its name:
# with the CIDRs in another order, split or merged, or with reserved ranges, which v2alpha1 does not have. Cadastre may
# see that in one list, miss the object in one or two, or be told by a watch. The other uid says that it is another object.
A, A1, A2, B = "10.0.0.0/21", "10.0.0.0/22", "10.0.4.0/22", "10.1.0.0/21"
SPAN = ("10.0.2.0", "10.0.2.255")
Recreate = Callable[[Fleet, "Clock", Manifest], None]


def _in_one_list(fleet: Fleet, clock: Clock, new: Manifest) -> None:
    fleet.remove("green")
    fleet.put(new)


def _missed_once(fleet: Fleet, clock: Clock, new: Manifest) -> None:
    fleet.remove("green")
    fleet.counted()
    fleet.put(new)


def _missed_twice(fleet: Fleet, clock: Clock, new: Manifest) -> None:
    fleet.remove("green")
    fleet.counted()
    clock.advance(31)
    fleet.counted()
    assert fleet.findings() == [("orphaned_pool", "green")]
    fleet.put(new)


def _watched(fleet: Fleet, clock: Clock, new: Manifest) -> None:
    old = fleet.there()["green"]
    fleet.remove("green")
    _told(fleet, "DELETED", old)
    assert fleet.findings() == [("orphaned_pool", "green")]
    fleet.put(new)
    _told(fleet, "ADDED", fleet.there()["green"])


def _told(fleet: Fleet, type_: str, received: Manifest) -> None:
    run = fleet.ingest(podippool.KIND, [CiliumPodIPPools()], (type_, received))
    assert not run.error_code, run.error


WAYS = [_in_one_list, _missed_once, _missed_twice, _watched]
# CIDRs before and after, and whether a range of them is reserved then.
SHAPES: dict[str, tuple[list[str], list[str], bool]] = {
    "same": ([A, B], [A, B], False),
    "other order": ([A, B], [B, A], False),
    "split": ([A, B], [A1, A2, B], False),
    "merged": ([A1, A2, B], [A, B], False),
    "ranges": ([A, B], [A, B], True),
    "split with ranges": ([A, B], [B, A2, A1], True),
    "merged with ranges": ([A1, A2], [A], True),
}


def _new(definition: str, cidrs: list[str], *, ranges: bool) -> Manifest:
    holding = next(cidr for cidr in cidrs if cidr in {A, A1})
    if definition == SHIPPED:
        pool: Any = [reserved(holding, SPAN)] if ranges else None
        return manifest("green", *cidrs, pool=pool)
    created = manifest("green")
    span = {"reservedRange": "-".join(SPAN)} if ranges else {}
    entries = [{"cidr": cidr} | (span if cidr == holding else {}) for cidr in cidrs]
    created["spec"]["ipv4"]["cidrs"] = entries
    return created


def _rows(pool: Pool) -> list[tuple[Any, ...]]:
    rows = Block.objects.filter(pool=pool, state__in=["held", "cooling"]).order_by("cidr")
    times = ("allocated_at", "available_from")
    return list(rows.values_list("pk", "cidr", "state", "holder_id", *times))


@pytest.mark.sample(20)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("recreate", WAYS, ids=lambda way: way.__name__.strip("_"))
@pytest.mark.parametrize("definition", [SHIPPED, PROPOSAL])
def test_it_keeps_everything(
    definition: str, recreate: Recreate, shape: str, fleet: Fleet, clock: Clock
) -> None:
    before, after, ranges = SHAPES[shape]
    fleet.put(manifest("green", *before, version="v2alpha1"))
    fleet.counted()
    pool = fleet.pool("green")
    change = pools.PoolChange(cooldown_seconds=7200, description="pods of the shop")
    pools.change(pool.pk, change, author=factories.BY)
    factories.take(pool, factories.holder("n1", kind="node"))
    factories.give_back(factories.take(pool, factories.holder("n2", kind="node")))
    rows = _rows(pool)
    assert [(str(cidr), state) for _, cidr, state, *_ in rows] == [
        ("10.0.0.0/24", "held"), ("10.0.1.0/24", "cooling"),
    ]  # fmt: skip
    recreate(fleet, clock, _new(definition, after, ranges=ranges))
    for _ in range(2):
        counts = fleet.counted()
        assert (counts["failed"], counts["written"]) == (0, 0)
        assert (fleet.findings(), fleet.problems(), fleet.drift()) == ([], {}, [])
    pool.refresh_from_db()
    assert (pool.cooldown_seconds, pool.description) == (7200, "pods of the shop")
    assert pool.orphaned_at is None
    assert _rows(pool) == rows
    assert fleet.cidrs("green") == after
    assert fleet.ranges("green") == ["-".join(SPAN)] * ranges
    blocks = {str(block) for cidr in after for block in ip_network(cidr).subnets(new_prefix=24)}
    free = blocks - {"10.0.0.0/24", "10.0.1.0/24"} - ({"10.0.2.0/24"} if ranges else set())
    nodes = factories.holders(len(free), kind="node")
    assert {block["cidr"] for block in factories.ask(pool, *nodes).blocks} == free


@pytest.mark.parametrize("recreate", WAYS[:2], ids=lambda way: way.__name__.strip("_"))
def test_a_pool_of_the_register_is_written_into_the_new_object(
    recreate: Recreate, fleet: Fleet, clock: Clock
) -> None:
    fleet.manage(ManagedResource.POOLS)
    pool = fleet.make("green", A, B, reserved=["-".join(SPAN)])
    fleet.counted()
    factories.take(pool, factories.holder("n1", kind="node"))
    rows = _rows(pool)
    recreate(fleet, clock, manifest("green", A, B))
    for _ in range(2):
        fleet.counted()
    assert _rows(pool) == rows
    assert fleet.there()["green"]["spec"]["ipv4"]["pool"] == [reserved(A, SPAN)]
    assert (fleet.ranges("green"), fleet.findings()) == (["-".join(SPAN)], [])


# --- Point 16: while the webhook is down, its policy says what fails: writes of pools, nothing
# else
MANAGED_RESOURCES = ["pools", "pod-cidrs"]


@pytest.fixture
def world(fake: FakeCluster) -> CiliumWorld:
    """A managed cluster with a pool of the register's own, and a node."""
    world = CiliumWorld(fake, managed_resource=True)
    world.connection.managed_resources = MANAGED_RESOURCES
    world.connection.save()
    world.pool("a", "10.0.0.0/22")
    world.follow_node("n1", demands={"a": 8})
    return world


def _down(world: CiliumWorld, policy: str) -> None:
    """Installed as the command prints it, and nobody is there."""
    hook = configuration.CILIUM_POD_IP_POOLS
    at = configuration.path(hook, world.cluster.name, "key")
    client = configuration.by_url("https://127.0.0.1:1", at)
    world.fake.put(configuration.manifest(hook, client, failure_policy=policy))


@pytest.mark.exhaustive
def test_with_fail_writes_of_pools_wait_and_nothing_else(world: CiliumWorld) -> None:
    _down(world, "Fail")
    world.pool("b", "10.1.0.0/22")
    world.node("n2", demands={"a": 8})
    for _ in range(2):
        run = world.run()
        assert (run.error_code, run.kinds["CiliumPodIPPool"]["failed"]) == ("", 1)
        rows = list(Drift.objects.all())
        assert {row.name for row in rows} == {"b"}
        assert all("failed calling webhook" in row.conflict for row in rows)
    assert len(world.lists("n1")) == len(world.lists("n2")) == 1
    with gateways.to(world.fake) as gateway, pytest.raises(Exception, match="calling webhook"):
        gateway.apply(gateways.POOLS, manifest("theirs", "10.2.0.0/16"), manager="kubectl")
    # Breaking the glass, or the webhook is up again.
    world.fake.remove("validatingwebhookconfigurations", configuration.CILIUM_POD_IP_POOLS.name)
    world.passed()
    assert len(world.fake.objects("ciliumpodippools")) == 2
    assert not Drift.objects.exists()


@pytest.mark.exhaustive
def test_with_ignore_what_was_not_judged_is_found(world: CiliumWorld, clock: Clock) -> None:
    _down(world, "Ignore")
    world.pool("b", "10.1.0.0/22")
    world.passed()
    assert len(world.fake.objects("ciliumpodippools")) == 2
    # The webhook would have refused it: it overlaps a pool in use.
    with gateways.to(world.fake) as gateway:
        gateway.apply(gateways.POOLS, manifest("theirs", "10.0.0.0/24"), manager="kubectl")
    world.run()
    assert world.subjects_by_code()["cidr_overlap"] == ["theirs 10.0.0.0/24, a 10.0.0.0/22"]
    assert world.held() == world.listed()


# Point 13: while an API server is down the register goes on, and what waits is done when it
# is back
@pytest.mark.exhaustive
def test_the_register_stays_authoritative(world: CiliumWorld, clock: Clock) -> None:
    before = world.held()
    world.fake.faults.add(status=503, times=None)
    machines = factories.pool("10.9.0.0/24", within=world.cluster)
    for number in range(4):
        assert not world.run().succeeded
        assert factories.take(machines)["cidr"].startswith("10.9.0.")
        world.add_cidr(f"10.{number + 1}.0.0/22")
        clock.advance(600)
    assert world.held().items() >= before.items()
    row = Connection.objects.get(pk=world.connection.pk)
    assert (row.error_code, row.failures) == ("cluster_server_error", 4)
    world.fake.faults.clear()
    world.passed()
    there = world.fake.object("ciliumpodippools", "a")["spec"]["ipv4"]["cidrs"]
    assert there == ["10.0.0.0/22", *(f"10.{number + 1}.0.0/22" for number in range(4))]
    world.fake.log.clear()
    world.passed()
    assert not world.fake.log.writes


@pytest.mark.exhaustive
def test_changes_do_not_hammer_at_a_server_that_is_down(world: CiliumWorld) -> None:
    """The pass that is due waits as long as the back-off says, however much is changed here."""
    world.fake.faults.add(status=503, times=None)
    for _ in range(6):
        world.run()
    assert leases.due_connections() == []
    due = Connection.objects.get(pk=world.connection.pk).due_at
    for number in range(3):
        world.add_cidr(f"10.{number + 1}.0.0/22")
    assert leases.due_connections() == []
    assert Connection.objects.get(pk=world.connection.pk).due_at == due
