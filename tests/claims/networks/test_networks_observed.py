"""A cluster's networks are taken in and followed; nothing is written to it."""

from __future__ import annotations

import pytest

from claims.models import Network
from claims.networks import networks
from pools.models import Block, Event, Now, Pool, PoolCIDR
from pools.register import pools
from tests import factories
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
    assert (network.topology, network.role, network.lifecycle) == (
        "layer2",
        "primary",
        "Persistent",
    )
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
    ovn.put(cudn("prod", SUBNET, "fd00::/64", reservedSubnets=["10.0.0.0/24"]))
    ovn.passed()
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
    ovn.put(udn())
    ovn.put(nad())
    ovn.put(nad("net", name="default_net", allowPersistentIPs=None))
    ovn.passed()

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
    ovn.put(cudn())
    ovn.passed()
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
    ovn.put(cudn("prod", SUBNET, reservedSubnets=["10.0.1.0/24"]))
    ovn.passed()
    ovn.put(cudn("prod", SUBNET, "fd00::/64", defaultGatewayIPs=["10.0.9.1", "fd00::9"]))
    ovn.passed()
    assert ovn.subnets() == [SUBNET, "fd00::/64"]
    assert [span for span, _ in ovn.ranges()] == [
        "10.0.0.2-10.0.0.2", "10.0.9.1-10.0.9.1", "fd00::2-fd00::2", "fd00::9-fd00::9",
    ]  # fmt: skip


def test_what_people_reserved_stays(ovn: Ovn) -> None:
    ovn.put(cudn())
    ovn.passed()
    pool = ovn.network().pool
    assert pool is not None
    factories.reserve(pool, "10.0.1.128-10.0.2.10")
    ovn.put(cudn("prod", SUBNET, reservedSubnets=["10.0.1.0/24"]))
    ovn.passed()
    assert [span for span, _ in _spans(pool)] == [
        "10.0.0.1-10.0.0.1", "10.0.0.2-10.0.0.2", "10.0.1.0-10.0.1.127", "10.0.1.128-10.0.2.10",
    ]  # fmt: skip


def _spans(pool: Pool) -> list[tuple[str, str]]:
    rows = pool.reserved_ranges.order_by("first")
    return [(str(row), row.reason) for row in rows]


@pytest.mark.exhaustive
def test_a_lost_subnet_in_use_is_an_orphan_until_nothing_holds_it(ovn: Ovn) -> None:
    ovn.put(cudn("prod", SUBNET))
    ovn.passed()
    pool = ovn.network().pool
    assert pool is not None
    block = factories.take(pool)
    ovn.put(cudn("prod", "10.1.0.0/16"))
    ovn.passed()
    assert (ovn.subnets(), ovn.subnets(orphaned=True)) == (["10.1.0.0/16"], [SUBNET])
    assert ovn.findings() == [("orphaned_subnet", f"cluster_udn_prod {SUBNET}")]
    factories.give_back(block)
    ovn.passed()
    assert (ovn.subnets(), ovn.subnets(orphaned=True)) == (["10.1.0.0/16"], [])
    assert ovn.findings() == []


@pytest.mark.exhaustive
@pytest.mark.parametrize("in_use", [False, True])
def test_a_deleted_network_stays_known_as_gone(ovn: Ovn, clock: Clock, in_use: bool) -> None:
    ovn.put(cudn())
    ovn.put(nad())
    ovn.passed()
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
    ovn.put(cudn())
    ovn.passed()
    assert (ovn.network().gone_at, ovn.subnets()) == (None, [SUBNET])
    held = Block.objects.filter(pool=ovn.network().pool, state="held").count()
    assert held == int(in_use)


@pytest.mark.exhaustive
def test_a_network_made_again_is_another_one(ovn: Ovn, clock: Clock) -> None:
    ovn.put(cudn())
    ovn.passed()
    ovn.remove(CUDNS, "prod")
    ovn.put(cudn("prod", "10.1.0.0/16"))
    for _ in range(2):
        ovn.passed()
        clock.advance(40)
    assert (ovn.network().gone_at, ovn.subnets()) == (None, ["10.1.0.0/16"])


def test_networks_may_have_the_same_subnets(ovn: Ovn) -> None:
    factories.pool(SUBNET, within=ovn.cluster, category="pod", mask=24)
    ovn.put(cudn("one"))
    ovn.put(cudn("two"))
    ovn.passed()
    assert ovn.subnets("cluster_udn_one") == ovn.subnets("cluster_udn_two") == [SUBNET]


def test_one_bad_network_fails_alone(ovn: Ovn) -> None:
    ovn.put(cudn("bad", "10.0.0.0/99"))
    ovn.put(cudn("twice", SUBNET, "10.0.1.0/24"))
    ovn.put(cudn())
    ovn.passed()
    assert ovn.names() == ["cluster_udn_prod"]
    assert ovn.problems() == {"bad": "not_a_cidr", "twice": "cidr_overlap"}


def test_a_pool_of_the_name_of_a_network(ovn: Ovn) -> None:
    """Only the name of a NAD made by hand can be that of a pool."""
    factories.pool(SUBNET, within=ovn.cluster, category="pod", mask=24, name="green")
    ovn.put(nad("green", name="green"))
    ovn.passed()
    pool = ovn.network("green").pool
    assert pool is not None
    assert pool.name == "network/green"


@pytest.mark.exhaustive
def test_a_pool_that_somebody_changed_says_again_what_its_network_says(ovn: Ovn) -> None:
    ovn.put(cudn("prod", SUBNET, reservedSubnets=["10.0.1.0/24"]))
    ovn.passed()
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
    ovn.put(nad("default", **default))
    ovn.passed()
    assert ovn.names() == []
