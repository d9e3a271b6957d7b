"""What pages say of nodes: what they ask for and have, and who is in the way of a migration."""

from ipaddress import ip_network

from pools.cilium import pod_cidrs
from tests import factories
from tests.handlers.node_world import World


def test_a_node_with_what_it_asks_for_and_has(world: World) -> None:
    world.node(
        "n1",
        demands={"a": {4: 600, 6: 5}, "x": 1},
        lists={"a": ["10.0.0.0/24", "10.9.0.0/24"]},
    )
    world.passed()
    (node,) = pod_cidrs.list_nodes(world.cluster.pk)
    a, x = node.pools
    assert (a.pool, a.needed, a.usable) == ("a", {4: 600, 6: 5}, {4: 254, 6: 0})
    assert a.missing == {4: 346, 6: 5}
    assert a.cidrs == (ip_network("10.0.0.0/24"), ip_network("10.9.0.0/24"))
    assert (x.pool, x.missing) == ("x", {4: 1, 6: 0})
    assert node.orphans == (("a", ip_network("10.9.0.0/24")),)
    assert node.uid == world.observed_node().uid
    assert (node.error, node.problem) == ("", "")


def test_overlaps_errors_and_blocks_that_wait(world: World) -> None:
    pool = world.cluster.pools.get()
    factories.take(pool, factories.holder("n2", kind="node"), cidr="10.0.3.0/24")
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    second = world.node("n2", lists={"a": ["10.0.0.0/24"]})
    second["status"] = {"ipam": {"operator-status": {"error": "pool empty"}}}
    world.fake.put(second)
    world.passed()
    _, node = pod_cidrs.list_nodes(world.cluster.pk)
    assert node.overlaps == (("a", ip_network("10.0.0.0/24"), "node n1"),)
    assert node.waiting == (ip_network("10.0.3.0/24"),)
    assert node.error == "pool empty"


def test_an_error_of_the_operator_is_shown_without_secrets(world: World) -> None:
    node = world.node("n1")
    node["status"] = {"ipam": {"operator-status": {"error": "refused: token=abcdef0123456789"}}}
    world.fake.put(node)
    world.passed()
    (shown,) = pod_cidrs.list_nodes(world.cluster.pk)
    assert shown.error == "refused: token=[redacted]"


def test_pages_of_nodes(world: World) -> None:
    for number in range(5):
        world.node(f"n{number}")
    world.passed()
    assert [
        node_addresses.name for node_addresses in pod_cidrs.list_nodes(world.cluster.pk, limit=2)
    ] == ["n0", "n1"]
    rest = pod_cidrs.list_nodes(world.cluster.pk, after="n1", limit=9)
    assert [item.name for item in rest] == ["n2", "n3", "n4"]
    assert [
        node_addresses.name for node_addresses in pod_cidrs.list_nodes(world.cluster.pk, name="n3")
    ] == ["n3"]
