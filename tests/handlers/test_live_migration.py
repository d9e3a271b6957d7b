"""Rule `migration-keeps-the-address`, also where two objects stand for one owner (kubevirt#13709).

What of it belongs to clusters: a block stays with its holder's uid whichever node it is on, a block
that moves between nodes has one holder at every moment, and two objects with one uid are one. The
claims of virtual machines stand on this.
"""

import copy
import json

import pytest

from pools.core import errors
from pools.models import Block, ObservedObject
from pools.register.allocator import allocation
from tests import factories
from tests.handlers.node_world import World
from tests.pools.conftest import Clock

UID = "7d2f8a54-6a0b-4a3c-9d5c-6c1a4b6f2f10"
NODES = "ciliumnodes"


def test_a_holder_keeps_its_block_while_nodes_come_and_go(world: World, clock: Clock) -> None:
    machines = factories.pool("10.9.0.0/24", category="instance", within=world.cluster)
    owner = allocation.Holder("instance", "vm-1", UID)
    block = factories.take(machines, owner)
    world.node("source", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    world.node("target", lists={"a": ["10.0.1.0/24"]})
    world.passed()
    assert factories.take(machines, owner) == block, "the target's pod asks, too"
    world.fake.remove(NODES, "source")
    for _ in range(2):
        world.passed()
        clock.advance(60)
    assert factories.take(machines, owner) == block
    assert Block.objects.filter(holder_id="vm-1", state="held").count() == 1


def test_another_owner_of_the_name_does_not_release_it(world: World) -> None:
    """The name is the same, the uid is not: what ends is the other one."""
    machines = factories.pool("10.9.0.0/24", category="instance", within=world.cluster)
    block = factories.take(machines, allocation.Holder("instance", "vm-1", UID))
    with pytest.raises(errors.IpamError):
        allocation.release(
            block["id"], allocation.Holder("instance", "vm-1", "another"), author=factories.BY
        )
    assert factories.row(block).state == "held"


def test_a_block_that_moves_between_nodes_is_never_free(world: World) -> None:
    world.node("source", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    world.node("target", lists={"a": ["10.0.0.0/24"]})  # both list it for a while
    world.passed()
    assert world.held() == {"10.0.0.0/24": "source"}
    world.node("source")
    world.passed()
    assert world.held() == {"10.0.0.0/24": "target"}
    assert not world.subjects_by_code()
    assert "10.0.0.0/24" not in factories.drain(world.cluster.pools.get())


@pytest.mark.exhaustive
@pytest.mark.parametrize("order", [("source", "target"), ("target", "source")])
def test_two_objects_that_name_one_uid_are_one(world: World, order: tuple[str, str]) -> None:
    """No API server says so; were it told, nothing is held twice and nothing is lost."""
    stored = world.node("source", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    both = []
    for name in order:
        both.append(copy.deepcopy(stored))
        both[-1]["metadata"] |= {"name": name, "resourceVersion": "99999"}
    listed = {"apiVersion": "cilium.io/v2", "kind": "CiliumNodeList", "items": both}
    body = json.dumps(listed | {"metadata": {"resourceVersion": "99999"}}).encode()
    world.fake.faults.add(verb="list", path=NODES, body=body, times=2)
    for _ in range(2):
        world.run()
        assert list(world.held()) == ["10.0.0.0/24"]
        assert ObservedObject.objects.count() == 1
    world.passed()
    world.passed()
    assert world.held() == {"10.0.0.0/24": "source"}
