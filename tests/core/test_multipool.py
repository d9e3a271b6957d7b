"""Cilium's multi-pool mode: addresses of blocks and nodes, and the PodCIDRs that nodes get, as a model of its operator says."""

from __future__ import annotations

from ipaddress import ip_network

import pytest
from hypothesis import example, given, strategies as st

from pools.core import errors
from pools.core.cilium import ciliumnode, multipool, podippool
from tests.core.cilium_operator import NOT_READY, Operator, Verb
from tests.core.pod_cidrs import node, pool, started, texts

COUNTS = st.integers(0, 1 << 40)


@pytest.mark.parametrize(
    ("block", "plain", "first", "both"),
    [
        ("10.0.0.0/24", 254, 255, 256),
        ("10.0.0.0/30", 2, 3, 4),
        ("10.0.0.0/31", 2, 2, 2),
        ("10.0.0.0/32", 1, 1, 1),
        ("fd00::/120", 254, 255, 256),
        ("fd00::/127", 2, 2, 2),
        ("fd00::/64", 2**64 - 2, 2**64 - 1, 2**64),
    ],
)
def test_usable_addresses(block: str, plain: int, first: int, both: int) -> None:
    network = ip_network(block)
    assert multipool.usable_addresses(network) == plain
    assert multipool.usable_addresses(network, allow_first=True) == first
    assert multipool.usable_addresses(network, allow_last=True) == first
    assert multipool.usable_addresses(network, allow_first=True, allow_last=True) == both


@pytest.mark.parametrize(
    ("in_use", "pending", "pre_allocated", "needed"),
    [
        (0, 0, 16, 16),
        (1, 0, 16, 32),
        (10, 5, 16, 32),
        (16, 0, 16, 32),
        (16, 1, 16, 48),
        (0, 0, 0, 0),
        (3, 2, 0, 5),
        (7, 0, 1, 8),
    ],
)
def test_needed(in_use: int, pending: int, pre_allocated: int, needed: int) -> None:
    result = multipool.needed_addresses(in_use=in_use, pending=pending, pre_allocated=pre_allocated)
    assert result == needed


@given(COUNTS, COUNTS, COUNTS)
def test_both_forms_agree(in_use: int, pending: int, pre_allocated: int) -> None:
    needed = multipool.needed_addresses(in_use=in_use, pending=pending, pre_allocated=pre_allocated)
    demand = in_use + pending + pre_allocated  # the formula of Cilium's documentation
    assert needed == (-(-demand // pre_allocated) * pre_allocated if pre_allocated else demand)
    assert needed >= in_use + pending + pre_allocated


def test_what_a_node_will_request() -> None:
    requested = multipool.requested_addresses(
        {"default": 8, "idle": 0},
        in_use={"blue": {4: 3}, "default": {4: 9}},
        pending={"blue": {4: 1, 6: 1}},
    )
    assert requested == {"blue": {4: 4, 6: 1}, "default": {4: 24, 6: 8}}
    assert multipool.requested_addresses({"default": 8}, in_use={}, families=[4]) == {
        "default": {4: 8}
    }


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {"default": 8}),
        ("  ", {"default": 8}),
        ("default=8", {"default": 8}),
        ("default=0,other=4", {"default": 0, "other": 4}),
        (" default = 8 , other=4\n", {"default": 8, "other": 4}),
        ("a.b-c=2147483647", {"a.b-c": 2147483647}),
    ],
)
def test_pre_allocation(text: str, expected: dict[str, int]) -> None:
    assert multipool.parse_pre_allocation(text) == expected


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (8, "wrong_type"),
        ("default", "pre_allocation"),
        ("=8", "pre_allocation"),
        ("default=8,", "pre_allocation"),
        ("a=1,b=2,a=1", "duplicate_key"),
        ("Default=8", "k8s_name"),
        ("default=", "pre_allocation_value"),
        ("default=-1", "pre_allocation_value"),
        ("default=1.5", "pre_allocation_value"),
        ("default=+8", "pre_allocation_value"),
        ("default=\uff18", "pre_allocation_value"),
        ("default=2147483648", "pre_allocation_value"),
        ("default=" + "9" * 5000, "pre_allocation_value"),
        ("default=8=9", "pre_allocation_value"),
    ],
)
def test_pre_allocation_refused(text: object, code: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        multipool.parse_pre_allocation(text, field="map")
    assert (caught.value.code, caught.value.problems[0].field) == (code, "map")


def test_pre_allocation_in_ciliums_words() -> None:
    with pytest.raises(errors.InvalidInput, match='invalid value for pool "x"'):
        multipool.parse_pre_allocation("default=8,x=many")


OLD = {"n1": ["10.0.0.0/24", "10.0.1.0/24"], "n2": ["10.0.2.0/24", "10.0.3.0/24"]}
# In the CIDRs of `a` and `b`, twice the same, larger than a block, and outside.
LISTED = st.sampled_from(
    ["10.0.1.0/30", "10.0.1.4/30", "10.0.1.8/29", "10.0.0.4/30", "10.1.0.0/30", "10.9.0.0/30"]
)
NODES = st.lists(
    st.tuples(
        st.dictionaries(st.sampled_from(["a", "b", "none"]), st.integers(0, 30)),
        st.dictionaries(st.sampled_from(["a", "b", "none"]), st.lists(LISTED, max_size=4)),
    ),
    max_size=4,
)
RESERVED = st.sampled_from(["", "10.0.1.0-10.0.1.5", "10.0.0.15-10.0.0.15"])


@given(NODES, RESERVED)
@example([({"a": 30}, {"a": ["10.0.1.0/30"]}), ({"b": 9}, {"a": ["10.0.1.0/30"]})], "")
def test_as_the_operator_does(
    demands: list[tuple[dict[str, int], dict[str, list[str]]]], reserved: str
) -> None:
    pools = [
        pool("a", "10.0.1.0/27", "10.0.0.0/28", mask=30, reserved=reserved),
        pool("b", "10.1.0.0/28", mask=30),
    ]
    nodes = [
        node(f"n{number}", demands=requested, **listed)
        for number, (requested, listed) in enumerate(demands)
    ]
    plans = multipool.plan(pools, nodes, families=[4])
    assert {name: (plan.blocks, plan.errors) for name, plan in plans.items()} == operator_plans(
        pools, nodes
    )


def operator_plans(
    pools: list[podippool.PodIPPool], nodes: list[ciliumnode.NodeDemand]
) -> dict[str, tuple[object, object]]:
    operator = Operator([4])
    for item in pools:
        operator.upsert_pool(item)
    for item in nodes:
        operator.allocate_to_node(item)
    operator.finish_restore()
    outcomes = {demand.name: operator.allocate_to_node(demand) for demand in nodes}
    return {
        name: (
            tuple((step.pool, step.cidr) for step in outcome.steps if step.verb is Verb.ALLOCATE),
            outcome.errors,
        )
        for name, outcome in outcomes.items()
    }


def test_does_the_new_cidr_fit_the_present_nodes() -> None:
    nodes = [node(name, demands={"a": 300}, a=cidrs) for name, cidrs in OLD.items()]
    after = multipool.drain_nodes(nodes, ip_network("10.0.0.0/16"))
    assert all(item.held_cidrs() == {"a": []} for item in after)
    fits = multipool.plan([pool("a", "10.1.0.0/22")], after, families=[4])
    assert [len(plan.blocks) for plan in fits.values()] == [2, 2]
    tight = multipool.plan([pool("a", "10.1.0.0/23")], after, families=[4])
    assert [bool(plan.errors) for plan in tight.values()] == [False, True]
    now = multipool.plan([pool("a", "10.0.0.0/22")], nodes, families=[4])
    assert not any(plan.blocks for plan in now.values())


def test_a_huge_demand_ends() -> None:
    demand = ciliumnode.NodeDemand("n1", requested={"b": {6: 2**63 - 1}})
    plans = multipool.plan([pool("b", "fd10::/16", mask=120)], [demand], families=[6])
    assert len(plans["n1"].blocks) == 10_000
    assert plans["n1"].errors[0].endswith("more than 10000 blocks at once")


def test_nothing_is_handed_out_before_all_nodes_were_seen() -> None:
    operator = Operator([4])
    operator.upsert_pool(pool("a", "10.0.0.0/16"))
    outcome = operator.allocate_to_node(
        node(demands={"a": 8}, a=["10.0.0.0/24"], b=["10.1.0.0/24"])
    )
    assert outcome.errors == (NOT_READY,)
    assert [step.verb for step in outcome.steps] == [Verb.OCCUPY, Verb.ORPHAN]
    operator.finish_restore()
    second = operator.allocate_to_node(node("n2", demands={"a": 300}))
    assert texts(second.cidrs(Verb.ALLOCATE)) == ["10.0.1.0/24", "10.0.2.0/24"]


@pytest.mark.parametrize(
    ("demands", "flags", "blocks"),
    [
        (0, {}, 0),
        (1, {}, 1),
        (14, {}, 1),
        (15, {}, 2),
        (15, {"first": True}, 1),
        (16, {"first": True}, 2),
        (16, {"first": True, "last": True}, 1),
    ],
)
def test_as_many_blocks_as_are_needed(demands: int, flags: dict[str, bool], blocks: int) -> None:
    operator = started(pool("a", "10.0.0.0/24", mask=28, **flags))
    assert len(operator.allocate_to_node(node(demands={"a": demands})).steps) == blocks


def test_cidrs_in_the_order_of_the_pool_and_next_fit_in_each() -> None:
    operator = started(pool("a", "10.9.0.0/30", "10.1.0.0/30", mask=32))
    first = operator.allocate_to_node(node(demands={"a": 2}))
    assert texts(first.cidrs(Verb.ALLOCATE)) == ["10.9.0.0/32", "10.9.0.1/32"]
    operator.allocate_to_node(node())
    again = operator.allocate_to_node(node(demands={"a": 5}))
    assert texts(again.cidrs(Verb.ALLOCATE)) == [
        *("10.9.0.2/32", "10.9.0.3/32", "10.9.0.0/32", "10.9.0.1/32"),
        "10.1.0.0/32",
    ]


def test_partial_success_keeps_what_there_was_and_joins_the_errors() -> None:
    operator = started(pool("a", "10.0.0.0/23"), pool("b", "10.1.0.0/24"))
    outcome = operator.allocate_to_node(node(demands={"a": 600, "gone": 1, "b": 100}))
    assert texts(outcome.cidrs(Verb.ALLOCATE)) == ["10.0.0.0/24", "10.0.1.0/24", "10.1.0.0/24"]
    assert outcome.errors == (
        'failed to allocate ipv4 address for node "n1" from pool "a": pool empty',
        'failed to allocate ipv4 address for node "n1" from pool "gone": '
        "cannot allocate from non-existing pool: gone",
    )


def test_wrong_lists() -> None:
    operator = started(pool("a", "10.0.0.0/16"), pool("b", "10.1.0.0/16"))
    operator.allocate_to_node(node(a=["10.0.0.0/24"]))
    outcome = operator.allocate_to_node(
        node("n2", a=["10.0.0.0/24", "10.0.0.0/25", "10.1.0.0/24"], gone=["10.7.0.0/24"])
    )
    assert outcome.errors == (
        "unable to reuse from pool a: cidr 10.0.0.0/24 has already been allocated",
        "unable to reuse from pool a: cidr 10.0.0.0/25 has already been allocated",
        "unable to reuse from pool a: cidr 10.1.0.0/24 is not part of the requested pool",
        "unable to find pool gone, prefix 10.7.0.0/24 is still allocated to the node but is "
        "marked as orphan",
    )
    allocated = operator.allocated("n2")
    assert {name: texts(cidrs) for name, cidrs in allocated.items()} == {
        "a": ["10.1.0.0/24"],
        "gone": ["10.7.0.0/24"],
    }


def test_larger_pieces_than_blocks() -> None:
    operator = started(pool("a", "10.0.0.0/22"))
    operator.allocate_to_node(node(a=["10.0.0.0/23"]))
    got = operator.allocate_to_node(node("n2", demands={"a": 999})).cidrs(Verb.ALLOCATE)
    assert texts(got) == ["10.0.2.0/24", "10.0.3.0/24"]
    assert texts(operator.allocate_to_node(node()).cidrs(Verb.RELEASE)) == ["10.0.0.0/23"]
    assert len(operator.allocate_to_node(node("n3", demands={"a": 999})).steps) == 2


def test_reserved_blocks_are_skipped_stay_with_their_nodes_and_come_back() -> None:
    reserved = "10.0.0.10-10.0.0.20 10.0.2.0-10.0.2.255"
    operator = started(pool("a", "10.0.0.0/22", reserved=reserved))
    held = node(demands={"a": 1}, a=["10.0.0.0/24"])
    assert operator.allocate_to_node(held).cidrs(Verb.OCCUPY) == [ip_network("10.0.0.0/24")]
    other = operator.allocate_to_node(node("n2", demands={"a": 999}))
    assert texts(other.cidrs(Verb.ALLOCATE)) == ["10.0.1.0/24", "10.0.3.0/24"]
    operator.allocate_to_node(node())
    assert operator.allocate_to_node(node("n3", demands={"a": 1})).steps == ()
    operator.upsert_pool(pool("a", "10.0.0.0/22"))
    cleared = operator.allocate_to_node(node("n3", demands={"a": 999})).cidrs(Verb.ALLOCATE)
    assert texts(cleared) == ["10.0.0.0/24", "10.0.2.0/24"]


def test_a_node_that_is_gone_gives_everything_back() -> None:
    operator = started(pool("a", "10.0.0.0/24"))
    operator.allocate_to_node(node(demands={"a": 1}, gone=["10.7.0.0/24"]))
    assert texts(operator.release_node("n1").cidrs(Verb.RELEASE)) == ["10.0.0.0/24", "10.7.0.0/24"]
    assert operator.allocated("n1") == operator.orphans("n1") == {}
    assert len(operator.allocate_to_node(node("n2", demands={"a": 1})).steps) == 1


def test_huge_networks_and_huge_demands_end() -> None:
    operator = Operator([6], max_blocks=100)
    reserved = "fd00::-fd00::ffff:ffff:ffff"
    operator.upsert_pool(pool("a", "fd00::/64", mask=120, reserved=reserved))
    operator.upsert_pool(pool("b", "fd10::/16", mask=120))
    operator.finish_restore()
    demand = ciliumnode.NodeDemand("n1", requested={"a": {6: 255}, "b": {6: 2**63 - 1}})
    outcome = operator.allocate_to_node(demand)
    assert str(outcome.steps[0].cidr) == "fd00::1:0:0:0/120"
    assert len(outcome.steps) == 100
    assert outcome.errors[0].endswith("more than 100 blocks at once")


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
