"""Without the managed resource the register has what the cluster's own operator did, and nothing is written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pools.models import Block
from pools.register.allocator import allocation
from tests import factories
from tests.handlers.node_world import World

if TYPE_CHECKING:
    from tests.kube.fake import FakeCluster


def test_what_a_node_lists_is_held_by_it(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.1.0/24", "10.0.0.0/24"]})
    world.node("n2", lists={"a": ["10.0.3.0/24"]})
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1", "10.0.1.0/24": "n1", "10.0.3.0/24": "n2"}
    block = Block.objects.get(cidr="10.0.3.0/24")
    assert (block.holder_kind, block.holder_uid) == ("node", world.observed_node("n2").uid)
    assert not world.fake.log.writes
    assert not world.subjects_by_code()


def test_what_is_in_use_is_not_handed_out_by_the_register(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.0.0/24", "10.0.2.0/24"]})
    world.passed()
    pool = world.cluster.pools.get()
    assert factories.drain(pool) == ["10.0.1.0/24", "10.0.3.0/24"]


def test_what_a_node_lists_no_more_is_released(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.0.0/24", "10.0.1.0/24"]})
    world.passed()
    world.node("n1", lists={"a": ["10.0.1.0/24"]})
    world.passed()
    assert world.held() == {"10.0.1.0/24": "n1"}


def test_in_use_is_in_use_also_in_a_reserved_range(world: World) -> None:
    pool = world.cluster.pools.get()
    factories.reserve(pool, "10.0.1.10-10.0.1.20")
    world.node("n1", lists={"a": ["10.0.1.0/24"]})
    world.passed()
    assert world.held() == {"10.0.1.0/24": "n1"}
    world.node("n1")
    world.passed()
    assert world.held() == {}
    assert "10.0.1.0/24" not in factories.drain(pool)


def test_both_families(fake: FakeCluster) -> None:
    world = World(fake)
    world.pool("a", "10.0.0.0/16", "fd00::/104", mask={4: 24, 6: 120})
    world.node("n1", lists={"a": ["10.0.7.0/24", "fd00::700/120"]})
    world.passed()
    assert world.held() == {"10.0.7.0/24": "n1", "fd00::700/120": "n1"}


def test_a_block_that_had_a_row_is_taken_again(world: World) -> None:
    pool = world.cluster.pools.get()
    factories.give_back(factories.take(pool))
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}


def test_a_second_pass_writes_nothing(world: World) -> None:
    world.node("n1", demands={"a": 300}, lists={"a": ["10.0.0.0/24"]})
    world.passed()
    before = Block.objects.values_list("pk", "allocated_at", "holder_uid").first()
    version = world.observed_node().changed_at
    world.passed()
    assert Block.objects.values_list("pk", "allocated_at", "holder_uid").first() == before
    assert world.observed_node().changed_at == version
    assert not world.fake.log.writes


def test_what_somebody_released_in_the_register_is_held_again(world: World) -> None:
    """The register may not hand out what a node uses, whoever said that it is free."""
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    block = Block.objects.get(state="held")
    allocation.release(block.pk, None, author=factories.WITH_REASON, force=True)
    assert world.held() == {}
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}
