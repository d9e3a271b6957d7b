"""What becomes of PodCIDRs when pools lose and regain CIDRs, and what of a pool cannot change."""

from __future__ import annotations

from ipaddress import ip_network

from tests.core.cilium_operator import Operator, Verb
from tests.core.pod_cidrs import node, pool, started, texts


def _in_use() -> Operator:
    operator = started(pool("a", "10.0.0.0/24", "10.1.0.0/24"))
    operator.allocate_to_node(node(demands={"a": 300}))
    return operator


BOTH = ["10.0.0.0/24", "10.1.0.0/24"]


def test_a_removed_cidr_orphans_its_blocks() -> None:
    operator = _in_use()
    outcome = operator.upsert_pool(pool("a", "10.1.0.0/24"))
    assert texts(outcome.cidrs(Verb.ORPHAN)) == ["10.0.0.0/24"]
    assert texts(operator.allocated("n1")["a"]) == BOTH
    assert texts(operator.orphans("n1")["a"]) == ["10.0.0.0/24"]
    # Orphans do not count as what the node has.
    again = operator.allocate_to_node(node(demands={"a": 300}, a=BOTH))
    assert again.steps == ()
    assert again.errors == (
        "unable to reuse from pool a: cidr 10.0.0.0/24 is not part of the requested pool",
        'failed to allocate ipv4 address for node "n1" from pool "a": pool empty',
    )


def test_orphans_are_adopted_when_the_pool_has_their_cidr_again() -> None:
    operator = _in_use()
    operator.upsert_pool(pool("a", "10.1.0.0/24"))
    outcome = operator.upsert_pool(pool("a", "10.1.0.0/24", "10.0.0.0/23"))
    assert texts(outcome.cidrs(Verb.ADOPT)) == ["10.0.0.0/24"]
    assert operator.orphans("n1") == {}
    assert operator.allocate_to_node(node(demands={"a": 300}, a=BOTH)).errors == ()
    fresh = operator.allocate_to_node(node("n2", demands={"a": 999})).cidrs(Verb.ALLOCATE)
    assert texts(fresh) == ["10.0.1.0/24"]


def test_an_orphan_is_not_adopted_by_another_pool() -> None:
    operator = _in_use()
    operator.upsert_pool(pool("a", "10.1.0.0/24"))
    assert operator.upsert_pool(pool("b", "10.0.0.0/16")).errors == (
        "unable to mark orphaned CIDR 10.0.0.0/24 still used by node n1 as allocated: "
        "unable to reuse from pool a: cidr 10.0.0.0/24 is not part of the requested pool",
    )
    operator.delete_pool("a")
    assert operator.upsert_pool(pool("b", "10.0.0.0/16")).errors == (
        "unable to mark orphaned CIDR 10.0.0.0/24 still used by node n1 as allocated: "
        "cannot reuse from non-existing pool: a",
    )


def test_a_deleted_pool_orphans_all_and_adopts_all_when_it_is_back() -> None:
    operator = _in_use()
    assert texts(operator.delete_pool("a").cidrs(Verb.ORPHAN)) == BOTH
    assert operator.delete_pool("a").errors == ('pool "a" requested for deletion doesn\'t exist',)
    assert texts(operator.allocated("n1")["a"]) == BOTH
    outcome = operator.upsert_pool(pool("a", "10.0.0.0/15"))
    assert texts(outcome.cidrs(Verb.ADOPT)) == BOTH


def test_an_orphan_that_the_node_gave_back_is_forgotten() -> None:
    operator = _in_use()
    operator.delete_pool("a")
    outcome = operator.allocate_to_node(node(a=["10.1.0.0/24"]))
    assert texts(outcome.cidrs(Verb.RELEASE)) == ["10.0.0.0/24"]
    adopted = operator.upsert_pool(pool("a", "10.0.0.0/15"))
    assert texts(adopted.cidrs(Verb.ADOPT)) == ["10.1.0.0/24"]


def test_an_orphan_is_known_again_after_a_restart() -> None:
    operator = Operator([4])
    operator.upsert_pool(pool("a", "10.1.0.0/24"))
    outcome = operator.allocate_to_node(node(a=BOTH))
    assert texts(outcome.cidrs(Verb.ORPHAN)) == ["10.0.0.0/24"]
    assert texts(operator.allocated("n1")["a"]) == BOTH


def test_a_kept_cidr_keeps_its_place_and_its_pointer() -> None:
    operator = started(pool("a", "10.0.0.0/30", mask=32))
    operator.allocate_to_node(node(demands={"a": 1}))
    operator.allocate_to_node(node())
    operator.upsert_pool(pool("a", "10.5.0.0/30", "10.0.0.0/30", mask=32))
    outcome = operator.allocate_to_node(node(demands={"a": 5}))
    assert outcome.cidrs(Verb.ALLOCATE)[0] == ip_network("10.0.0.1/32")
    assert outcome.cidrs(Verb.ALLOCATE)[-1] == ip_network("10.5.0.0/32")


def test_what_of_a_pool_cannot_change() -> None:
    operator = started(pool("a", "10.0.0.0/16"))
    refusals = [
        operator.upsert_pool(changed).errors
        for changed in (
            pool("a", "10.0.0.0/16", mask=25),
            pool("a", "10.0.0.0/16", "fd00::/24"),
            pool("a", "10.0.0.0/16", first=True),
            pool("a", "10.0.0.0/16", last=True),
        )
    ]
    assert refusals == [
        ('cannot change IPv4 mask size in existing pool "a"',),
        ('cannot change IPv6 mask size in existing pool "a"',),
        ('cannot change allowFirstIP in existing pool "a"',),
        ('cannot change allowLastIP in existing pool "a"',),
    ]
