"""What is odd about PodCIDRs is told as long as it is so (rule `duplicates-are-reported`)."""

from pools.models import Block, Finding, Now, Pool, PoolCIDR
from tests import factories
from tests.handlers.node_world import World
from tests.pools.conftest import Clock


def test_two_nodes_with_one_block_the_first_keeps_it(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.node("n2", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}
    assert world.subjects_by_code() == {"pod_cidr_overlap": ["10.0.0.0/24 n2"]}
    message = Finding.objects.get().message
    assert "n1" in message
    assert "n2" in message
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}


def test_the_other_takes_it_over_when_the_first_lets_go(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.node("n2", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    world.node("n1")
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n2"}
    assert not world.subjects_by_code()


def test_a_cidr_outside_its_pool_is_an_orphan(world: World) -> None:
    world.node("n1", lists={"a": ["10.9.0.0/24", "10.0.0.0/24"]})
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}
    assert world.subjects_by_code() == {"orphaned_pod_cidr": ["10.9.0.0/24 n1"]}
    factories.pool("10.9.0.0/16", mask=24, category="pod", within=world.cluster, name="b")
    world.passed()
    assert world.subjects_by_code() == {"orphaned_pod_cidr": ["10.9.0.0/24 n1"]}


def test_an_orphan_that_its_pool_regains_is_a_block_again(world: World) -> None:
    from pools.register import pools

    world.node("n1", lists={"a": ["10.9.0.0/24"]})
    world.passed()
    pools.add_cidr(
        world.cluster.pools.get().pk, factories.entry("10.9.0.0/16"), author=factories.BY
    )
    world.passed()
    assert world.held() == {"10.9.0.0/24": "n1"}
    assert not world.subjects_by_code()


def test_a_cidr_that_the_cluster_lost_is_still_in_use(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    PoolCIDR.objects.update(orphaned_at=Now())
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1"}
    assert world.subjects_by_code() == {"orphaned_pod_cidr": ["10.0.0.0/24 n1"]}
    world.node("n2", lists={"a": ["10.0.1.0/24"]})
    world.passed()
    assert world.held() == {"10.0.0.0/24": "n1", "10.0.1.0/24": "n2"}
    assert Block.objects.get(cidr="10.0.1.0/24").withheld


def test_a_block_listed_under_the_pools_former_name_is_in_use(world: World) -> None:
    """cilium/cilium#41986: the CIDR came back under another pool, and was handed out twice."""
    world.pool("new", "10.5.0.0/23")
    world.node("n1", lists={"old": ["10.5.0.0/24"]})
    world.passed()
    assert world.held() == {"10.5.0.0/24": "n1"}
    assert "10.5.0.0/24" not in factories.drain(Pool.objects.get(name="new"))
    assert world.subjects_by_code()["unknown_pool"] == ["old"]


def test_a_pool_that_is_not_there(world: World) -> None:
    world.node("n1", lists={"x": ["10.7.0.0/24"]})
    world.node("n2", demands={"x": 5, "y": 0})
    world.passed()
    assert world.subjects_by_code() == {"unknown_pool": ["x"]}
    assert Finding.objects.get().details == {"pool": "x", "nodes": ["n1", "n2"], "count": 2}
    world.pool("x", "10.7.0.0/16")
    world.passed()
    assert world.held() == {"10.7.0.0/24": "n1"}
    assert not world.subjects_by_code()


def test_a_cidr_of_another_size_is_no_block(world: World) -> None:
    world.node("n1", lists={"a": ["10.0.0.0/25"]})
    world.passed()
    assert world.held() == {}
    assert world.subjects_by_code() == {"pod_cidr_size": ["10.0.0.0/25 n1"]}


def test_a_block_whose_node_comes_after_the_list_is_no_leak(world: World, clock: Clock) -> None:
    """whereabouts#207: the owner was made between the two lists."""
    pool = world.cluster.pools.get()
    factories.take(pool, factories.holder("n9", kind="node"))
    world.passed()
    assert not world.subjects_by_code()
    clock.advance(60)
    world.passed()
    assert world.subjects_by_code() == {"leaked_pod_cidr": ["10.0.0.0/24 n9"]}
    assert world.held() == {"10.0.0.0/24": "n9"}
    clock.advance(60)
    world.node("n9", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    assert not world.subjects_by_code()


def test_a_block_that_its_node_does_not_list(world: World) -> None:
    """Nobody is going to tell the node of it, and it is not ours to say that it is free."""
    factories.take(world.cluster.pools.get(), factories.holder("n1", kind="node"))
    world.node("n1")
    world.passed()
    assert world.subjects_by_code() == {"unlisted_pod_cidr": ["10.0.0.0/24 n1"]}
    assert world.held() == {"10.0.0.0/24": "n1"}


def test_what_cools_and_is_handed_out_by_the_cluster_is_recorded(
    world: World, clock: Clock
) -> None:
    world.pool("slow", "10.8.0.0/23", cooldown=3600)
    world.node("n1", lists={"slow": ["10.8.0.0/24"]})
    world.passed()
    world.node("n1")
    world.passed()
    assert Block.objects.get(cidr="10.8.0.0/24").state == "cooling"
    world.node("n2", lists={"slow": ["10.8.0.0/24"]})
    world.passed()
    assert world.held() == {"10.8.0.0/24": "n2"}
    assert world.subjects_by_code() == {"cooldown_not_kept": ["10.8.0.0/24 n2"]}
    clock.advance(3601)
    world.passed()
    assert not world.subjects_by_code()
