"""Networks of an observed cluster, and their NADs."""

from __future__ import annotations

import json
from ipaddress import ip_network

import pytest

from claims.models import Network
from claims.networks import networks
from pools.core.holders import BlockDemand, Holder
from pools.models import Block, Event, Now, Pool, PoolCIDR
from pools.register import pools
from pools.register.allocator import allocation
from tests import factories
from tests.checks import conftest as checks
from tests.claims import worlds
from tests.claims.networks.ovn import SUBNET, Ovn, cudn, nad, udn
from tests.pools.conftest import Clock

CUDNS, NADS = "clusteruserdefinednetworks", "network-attachment-definitions"


@pytest.mark.exhaustive
def test_a_network_is_taken_in_with_its_pool(ovn: Ovn) -> None:
    ovn.put(
        cudn(
            "prod", SUBNET, "fd00::/64",
            defaultGatewayIPs=["10.0.0.1", "fd00::1"],
            reservedSubnets=["10.0.1.0/24"],
            infrastructureSubnets=["10.0.0.0/28", "fd00::/120"],
            mtu=1400,
        )
    )  # fmt: skip
    ovn.put(nad())
    assert ovn.counted() == {"changed": 2, "written": 0, "failed": 0}
    network = ovn.network()
    assert (network.kind, network.object_name, network.follows_cluster) == ("cudn", "prod", True)
    values = (network.topology, network.role, network.lifecycle)
    assert values == ("layer2", "primary", "Persistent")
    assert (network.subnets, network.mtu) == ([SUBNET, "fd00::/64"], 1400)
    assert network.namespace_selector == {"matchLabels": {"kubernetes.io/metadata.name": "blue"}}
    assert ovn.nads() == ["default/prod"]
    assert networks.static_vm_check(network).ok
    pool = network.pool
    assert pool is not None
    assert (pool.name, pool.category, str(pool.space)) == (network.name, "vm", str(pool.space))
    assert (pool.mask_size_v4, pool.mask_size_v6, pool.space.name) == (32, 128, network.name)
    assert ovn.subnets() == [SUBNET, "fd00::/64"]
    assert ovn.ranges() == [
        ("10.0.0.0-10.0.0.0", "infrastructure"),
        ("10.0.0.1-10.0.0.1", "default"),
        ("10.0.0.2-10.0.0.2", "management"),
        ("10.0.0.3-10.0.0.15", "infrastructure"),
        ("10.0.1.0-10.0.1.255", "reserved"),
        ("fd00::-fd00::", "infrastructure"),
        ("fd00::1-fd00::1", "default"),
        ("fd00::2-fd00::2", "management"),
        ("fd00::3-fd00::ff", "infrastructure"),
    ]
    assert factories.take(pool, family=4)["cidr"] == "10.0.0.16/32"


def test_the_first_address_is_the_gateway_and_is_reserved(ovn: Ovn) -> None:
    ovn.follow(cudn("prod", SUBNET, "fd00::/64", reservedSubnets=["10.0.0.0/24"]))
    assert ovn.ranges() == [
        ("10.0.0.0-10.0.0.0", "reserved"),
        ("10.0.0.1-10.0.0.1", "default"),
        ("10.0.0.2-10.0.0.2", "management"),
        ("10.0.0.3-10.0.0.255", "reserved"),
        ("fd00::1-fd00::1", "default"),
        ("fd00::2-fd00::2", "management"),
    ]


@pytest.mark.exhaustive
def test_a_second_pass_changes_nothing(ovn: Ovn) -> None:
    ovn.put(cudn("prod", SUBNET, "fd00::/64", reservedSubnets=["10.0.1.0/24"]))
    ovn.follow(udn(), nad(), nad("net", name="default_net", allowPersistentIPs=None))

    def state() -> object:
        rows = [list(model.objects.order_by("pk").values()) for model in (Network, Pool, PoolCIDR)]
        return rows, Event.objects.count()

    before = state()
    assert ovn.counted() == {"changed": 0, "written": 0, "failed": 0}
    assert state() == before


def test_a_name_that_only_an_ippool_mentioned_becomes_known(ovn: Ovn) -> None:
    network = networks.get_or_create(ovn.cluster.pk, "cluster_udn_prod")
    ippool = worlds.ippool(network)
    worlds.entry(ippool, "00:1a:4b:00:00:01", "10.0.0.5/16", vm="one", namespace="blue")
    worlds.entry(ippool, "00:1a:4b:00:00:02", "10.0.0.1/16")
    assert not networks.static_vm_check(network).ok
    ovn.follow(cudn())
    assert ovn.network().pk == network.pk
    held = Block.objects.filter(pool=ovn.network().pool, state="held")
    assert {(str(item.cidr), item.holder_id) for item in held} == {
        ("10.0.0.5/32", "blue/one"),
        ("10.0.0.1/32", "00:1a:4b:00:00:02"),
    }
    flagged = network.index_entries.filter(duplicate_ip=True)
    assert [str(item.address) for item in flagged] == ["10.0.0.1"], "the gateway has it"


@pytest.mark.exhaustive
def test_changes_are_followed(ovn: Ovn) -> None:
    ovn.follow(cudn("prod", SUBNET, reservedSubnets=["10.0.1.0/24"]))
    ovn.follow(cudn("prod", SUBNET, "fd00::/64", defaultGatewayIPs=["10.0.9.1", "fd00::9"]))
    assert ovn.subnets() == [SUBNET, "fd00::/64"]
    assert [span for span, _ in ovn.ranges()] == [
        "10.0.0.2-10.0.0.2", "10.0.9.1-10.0.9.1", "fd00::2-fd00::2", "fd00::9-fd00::9",
    ]  # fmt: skip


def test_what_people_reserved_stays(ovn: Ovn) -> None:
    ovn.follow(cudn())
    pool = ovn.network().pool
    assert pool is not None
    factories.reserve(pool, "10.0.1.128-10.0.2.10")
    ovn.follow(cudn("prod", SUBNET, reservedSubnets=["10.0.1.0/24"]))
    assert [*map(str, pool.reserved_ranges.order_by("first"))] == [
        "10.0.0.1-10.0.0.1", "10.0.0.2-10.0.0.2", "10.0.1.0-10.0.1.127", "10.0.1.128-10.0.2.10",
    ]  # fmt: skip


@pytest.mark.exhaustive
def test_a_lost_subnet_in_use_is_an_orphan_until_nothing_holds_it(ovn: Ovn) -> None:
    ovn.follow(cudn("prod", SUBNET))
    pool = ovn.network().pool
    assert pool is not None
    block = factories.take(pool)
    ovn.follow(cudn("prod", "10.1.0.0/16"))
    assert (ovn.subnets(), ovn.subnets(orphaned=True)) == (["10.1.0.0/16"], [SUBNET])
    assert ovn.findings() == [("orphaned_subnet", f"cluster_udn_prod {SUBNET}")]
    factories.give_back(block)
    ovn.passed()
    assert (ovn.subnets(), ovn.subnets(orphaned=True)) == (["10.1.0.0/16"], [])
    assert ovn.findings() == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("in_use", [False, True])
def test_a_deleted_network_stays_known_as_gone(ovn: Ovn, clock: Clock, in_use: bool) -> None:
    ovn.follow(cudn(), nad())
    if in_use:
        worlds.entry(worlds.ippool(ovn.network()), "00:1a:4b:00:00:01", "10.0.0.5/16")
    for plural, name, space in ((NADS, "prod", "default"), (CUDNS, "prod", "")):
        ovn.remove(plural, name, space)
    ovn.passed()
    assert ovn.network().gone_at is None, "one list without it is no proof"
    clock.advance(40)
    ovn.passed()
    network = ovn.network()
    assert network.gone_at is not None
    assert [reason.code for reason in networks.static_vm_check(network).reasons] == ["gone"]
    assert (ovn.nads(), ovn.subnets()) == ([], [])
    assert ovn.subnets(orphaned=True) == ([SUBNET] if in_use else [])
    ovn.follow(cudn())
    assert (ovn.network().gone_at, ovn.subnets()) == (None, [SUBNET])
    held = Block.objects.filter(pool=ovn.network().pool, state="held").count()
    assert held == int(in_use)


@pytest.mark.exhaustive
def test_a_network_made_again_is_another_one(ovn: Ovn, clock: Clock) -> None:
    ovn.follow(cudn())
    ovn.remove(CUDNS, "prod")
    ovn.put(cudn("prod", "10.1.0.0/16"))
    for _ in range(2):
        ovn.passed()
        clock.advance(40)
    assert (ovn.network().gone_at, ovn.subnets()) == (None, ["10.1.0.0/16"])


def test_networks_may_have_the_same_subnets(ovn: Ovn) -> None:
    factories.pool(SUBNET, within=ovn.cluster, category="pod", mask=24)
    ovn.follow(cudn("one"), cudn("two"))
    assert ovn.subnets("cluster_udn_one") == ovn.subnets("cluster_udn_two") == [SUBNET]


def test_one_bad_network_fails_alone(ovn: Ovn) -> None:
    ovn.follow(cudn("bad", "10.0.0.0/99"), cudn("twice", SUBNET, "10.0.1.0/24"), cudn())
    assert ovn.names() == ["cluster_udn_prod"]
    assert ovn.problems() == {"bad": "not_a_cidr", "twice": "cidr_overlap"}


def test_a_pool_of_the_name_of_a_network(ovn: Ovn) -> None:
    """Only the name of a NAD made by hand can be that of a pool."""
    factories.pool(SUBNET, within=ovn.cluster, category="pod", mask=24, name="green")
    ovn.follow(nad("green", name="green"))
    pool = ovn.network("green").pool
    assert pool is not None
    assert pool.name == "network/green"


@pytest.mark.exhaustive
def test_a_pool_that_somebody_changed_says_again_what_its_network_says(ovn: Ovn) -> None:
    ovn.follow(cudn("prod", SUBNET, reservedSubnets=["10.0.1.0/24"]))
    pool = ovn.network().pool
    assert pool is not None
    before = ovn.ranges()
    pools.unreserve(pool.reserved_ranges.all()[0].pk, author=factories.BY)
    pools.add_cidr(pool.pk, factories.entry("10.1.0.0/16"), author=factories.BY)
    ovn.passed()
    assert (ovn.subnets(), ovn.ranges()) == ([SUBNET], before)
    worlds.entry(worlds.ippool(ovn.network()), "00:1a:4b:00:00:01", "10.0.0.5/16", vm="one")
    block = Block.objects.get(state="held")
    Block.objects.filter(pk=block.pk).update(state="available", available_from=Now())
    pools.delete(pool.pk, author=factories.BY)
    assert ovn.network().pool is None
    ovn.passed()
    assert (ovn.subnets(), ovn.ranges()) == ([SUBNET], before)
    assert [str(block.cidr) for block in Block.objects.filter(state="held")] == ["10.0.0.5/32"]


def test_the_default_network_is_no_vm_network(ovn: Ovn) -> None:
    default = {"name": "ovn-kubernetes", "topology": None, "role": None, "subnets": None}
    ovn.follow(nad("default", **default))
    assert ovn.names() == []


# --- NADs: through which namespaces a network is used, and networks that only NADs make -----------
@pytest.mark.exhaustive
def test_nads_made_by_hand_make_a_network(ovn: Ovn, clock: Clock) -> None:
    ovn.follow(nad("a", name="tenant"), nad("b", name="tenant", subnets="10.9.0.0/16"))
    network = ovn.network("tenant")
    assert (network.kind, network.object_name, network.subnets) == ("nad", "a", [SUBNET])
    assert ovn.nads("tenant") == ["default/a", "default/b"]
    assert networks.static_vm_check(network).ok
    assert ovn.findings() == [("nad_differs", "default/b")]
    ovn.lose(clock, NADS, "a", "default")
    assert (ovn.network("tenant").object_name, ovn.subnets("tenant")) == ("b", ["10.9.0.0/16"])
    ovn.lose(clock, NADS, "b", "default")
    assert ovn.network("tenant").gone_at is not None
    assert (ovn.subnets("tenant"), ovn.findings()) == ([], [])


def test_foreign_ones_are_left_alone(ovn: Ovn) -> None:
    ovn.follow(nad("bridge", type="bridge", name="bridge"), nad("prod", name="tenant"))
    assert ovn.names() == ["tenant"]
    ovn.follow(nad("prod", type="macvlan", name="tenant"))
    assert (ovn.nads("tenant"), ovn.problems()) == ([], {})
    assert ovn.network("tenant").gone_at is not None


def test_a_list_of_one_plugin_makes_a_network_and_a_chain_does_not(ovn: Ovn) -> None:
    """As OVN-Kubernetes reads a conflist; the network is called as the list."""
    config = json.loads(nad("a", name="tenant")["spec"]["config"])
    del config["name"]
    chain = {"cniVersion": "1.1.0", "name": "chain", "plugins": [config, {"type": "tuning"}]}
    alone = chain | {"name": "tenant", "plugins": [config]}
    odd = chain | {"plugins": [None]}
    ovn.follow(
        *(
            nad(name, config=json.dumps(text))
            for name, text in {"a": alone, "b": chain, "c": odd}.items()
        )
    )
    assert (ovn.names(), ovn.nads("tenant")) == (["tenant"], ["default/a"])
    assert ovn.subnets("tenant") == [SUBNET]
    assert ovn.problems() == {"c": "observed_object_invalid"}


def test_a_broken_one_is_its_own_problem(ovn: Ovn) -> None:
    ovn.follow(nad("broken", config="{"), nad("prod"))
    assert (ovn.problems(), ovn.nads()) == ({"broken": "config_syntax"}, ["default/prod"])


def test_a_nad_that_moves_to_another_network(ovn: Ovn) -> None:
    ovn.follow(nad("a", name="one"))
    ovn.follow(nad("a", name="two"))
    assert (ovn.nads("one"), ovn.nads("two")) == ([], ["default/a"])
    assert ovn.network("one").gone_at is not None


def test_the_udn_counts_whichever_was_seen_first(ovn: Ovn) -> None:
    ovn.follow(nad("prod", subnets="10.5.0.0/16"))
    assert ovn.network().kind == "nad"
    ovn.follow(cudn())
    assert (ovn.network().kind, ovn.subnets()) == ("cudn", [SUBNET])
    assert ovn.findings() == [("nad_differs", "default/prod")]


def test_without_persistent_ips_there_are_no_static_vms(ovn: Ovn) -> None:
    ovn.follow(cudn(), nad("prod", allowPersistentIPs=None))
    static_vm_check = networks.static_vm_check(ovn.network())
    assert [reason.code for reason in static_vm_check.reasons] == ["nad_not_persistent"]


def test_a_nad_by_hand_that_takes_the_name_of_a_udn(ovn: Ovn) -> None:
    ovn.follow(cudn(), nad("mine"))
    assert ovn.findings() == [("network_name_taken", "default/mine")]


def test_what_ovn_kubernetes_could_not_do_is_told(ovn: Ovn) -> None:
    ovn.put(cudn())
    states = (("NetworkCreated", "False"), ("NetworkAllocationSucceeded", "True"))
    why = {"reason": "SyncError", "message": "no such label"}
    why["lastTransitionTime"] = "2026-11-20T00:00:00Z"
    conditions = [{"type": kind, "status": status} | why for kind, status in states]
    ovn.follow(cudn(status={"conditions": conditions}))
    assert ovn.network().conditions == conditions
    assert ovn.findings() == [("network_not_created", "cluster_udn_prod")]


def test_a_network_of_many_namespaces_costs_few_statements(
    ovn: Ovn, django_assert_max_num_queries: object
) -> None:
    for number in range(60):
        ovn.put(nad(f"n{number}", name="tenant"))
    with django_assert_max_num_queries(176):  # type: ignore[operator]
        ovn.passed()
    assert len(ovn.nads("tenant")) == 60


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    ("before", "after", "orphans"),
    [
        (SUBNET, "10.0.0.0/24", ["10.0.4.0/22"]),
        ("10.0.0.0/21", SUBNET, []),
        ("10.0.0.0/21", "10.0.4.0/22", ["10.0.0.0/22"]),
        ("10.0.0.0/22,10.0.4.0/22", "10.0.0.0/20", []),
        ("fd00::/64,10.0.0.0/21", "fd00::/112,10.0.0.0/22", ["10.0.4.0/22"]),
    ],
)
def test_subnets_are_replaced_while_addresses_are_in_use(
    ovn: Ovn, before: str, after: str, orphans: list[str]
) -> None:
    """Nobody is stuck: what is in use stays with its holder, inside of the new subnets or beside them."""
    ovn.follow(nad("a", name="tenant", subnets=before))
    pool = worlds.ippool(ovn.network("tenant"))
    worlds.entry(pool, "02:00:00:00:00:05", "10.0.0.5/21", vm="in")
    worlds.entry(pool, "02:00:00:00:00:06", "10.0.7.5/21", vm="out")
    held = dict(Block.objects.filter(state="held").values_list("cidr", "pk"))
    assert len(held) == 2
    ovn.follow(nad("a", name="tenant", subnets=after))
    assert ovn.problems() == {}
    assert sorted(ovn.subnets("tenant")) == sorted(after.split(","))
    assert ovn.subnets("tenant", orphaned=True) == orphans
    assert dict(Block.objects.filter(state="held").values_list("cidr", "pk")) == held
    demand = BlockDemand((Holder("device", "printer"),), families=(4,))
    done = allocation.allocate(ovn.network("tenant").pool.pk, demand, author=worlds.BY)
    (block,) = done.blocks
    first = ip_network(next(item for item in after.split(",") if "." in item))[3]
    assert block["cidr"] == f"{first}/32"
    run = checks.check()
    assert checks.wrong(run) == {}, checks.texts(run)
    assert ovn.counted() == {"changed": 0, "written": 0, "failed": 0}
