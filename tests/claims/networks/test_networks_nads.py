"""NADs: through which namespaces a network is used, and networks that only NADs make."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from claims.networks import networks
from pools.core.holders import BlockDemand, Holder
from pools.models import Block
from pools.register.allocator import allocation
from tests.checks import conftest as checks
from tests.claims import worlds
from tests.claims.networks.ovn import SUBNET, Ovn, cudn, nad
from tests.pools.conftest import Clock

NADS = "network-attachment-definitions"


@pytest.mark.exhaustive
def test_nads_made_by_hand_make_a_network(ovn: Ovn, clock: Clock) -> None:
    ovn.put(nad("a", name="tenant"))
    ovn.put(nad("b", name="tenant", subnets="10.9.0.0/16"))
    ovn.passed()
    network = ovn.network("tenant")
    assert (network.kind, network.object_name, network.subnets) == ("nad", "a", [SUBNET])
    assert ovn.nads("tenant") == ["default/a", "default/b"]
    assert networks.static_vm_check(network).ok
    assert ovn.findings() == [("nad_differs", "default/b")]
    ovn.remove(NADS, "a", "default")
    ovn.passed()
    clock.advance(40)
    ovn.passed()
    assert (ovn.network("tenant").object_name, ovn.subnets("tenant")) == ("b", ["10.9.0.0/16"])
    ovn.remove(NADS, "b", "default")
    ovn.passed()
    clock.advance(40)
    ovn.passed()
    assert ovn.network("tenant").gone_at is not None
    assert (ovn.subnets("tenant"), ovn.findings()) == ([], [])


def test_foreign_ones_are_left_alone(ovn: Ovn) -> None:
    ovn.put(nad("bridge", type="bridge", name="bridge"))
    ovn.put(nad("prod", name="tenant"))
    ovn.passed()
    assert ovn.names() == ["tenant"]
    ovn.put(nad("prod", type="macvlan", name="tenant"))
    ovn.passed()
    assert (ovn.nads("tenant"), ovn.problems()) == ([], {})
    assert ovn.network("tenant").gone_at is not None


def test_a_broken_one_is_its_own_problem(ovn: Ovn) -> None:
    ovn.put(nad("broken", config="{"))
    ovn.put(nad("prod"))
    ovn.passed()
    assert (ovn.problems(), ovn.nads()) == ({"broken": "config_syntax"}, ["default/prod"])


def test_a_nad_that_moves_to_another_network(ovn: Ovn) -> None:
    ovn.put(nad("a", name="one"))
    ovn.passed()
    ovn.put(nad("a", name="two"))
    ovn.passed()
    assert (ovn.nads("one"), ovn.nads("two")) == ([], ["default/a"])
    assert ovn.network("one").gone_at is not None


def test_the_udn_counts_whichever_was_seen_first(ovn: Ovn) -> None:
    ovn.put(nad("prod", subnets="10.5.0.0/16"))
    ovn.passed()
    assert ovn.network().kind == "nad"
    ovn.put(cudn())
    ovn.passed()
    assert (ovn.network().kind, ovn.subnets()) == ("cudn", [SUBNET])
    assert ovn.findings() == [("nad_differs", "default/prod")]


def test_without_persistent_ips_there_are_no_static_vms(ovn: Ovn) -> None:
    ovn.put(cudn())
    ovn.put(nad("prod", allowPersistentIPs=None))
    ovn.passed()
    static_vm_check = networks.static_vm_check(ovn.network())
    assert [reason.code for reason in static_vm_check.reasons] == ["nad_not_persistent"]


def test_a_nad_by_hand_that_takes_the_name_of_a_udn(ovn: Ovn) -> None:
    ovn.put(cudn())
    ovn.put(nad("mine"))
    ovn.passed()
    assert ovn.findings() == [("network_name_taken", "default/mine")]


def test_what_ovn_kubernetes_could_not_do_is_told(ovn: Ovn) -> None:
    ovn.put(cudn())
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": "SyncError",
            "message": "no such label",
            "lastTransitionTime": "2026-11-20T00:00:00Z",
        }
        for kind, status in (("NetworkCreated", "False"), ("NetworkAllocationSucceeded", "True"))
    ]
    ovn.put(cudn(status={"conditions": conditions}))
    ovn.passed()
    assert ovn.network().conditions == conditions
    assert ovn.findings() == [("network_not_created", "cluster_udn_prod")]


def test_a_network_of_many_namespaces_costs_few_statements(
    ovn: Ovn, django_assert_max_num_queries: object
) -> None:
    for number in range(60):
        ovn.put(nad(f"n{number}", name="tenant"))
    with django_assert_max_num_queries(175):  # type: ignore[operator]
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
    ovn.put(nad("a", name="tenant", subnets=before))
    ovn.passed()
    pool = worlds.ippool(ovn.network("tenant"))
    worlds.entry(pool, "02:00:00:00:00:05", "10.0.0.5/21", vm="in")
    worlds.entry(pool, "02:00:00:00:00:06", "10.0.7.5/21", vm="out")
    held = dict(Block.objects.filter(state="held").values_list("cidr", "pk"))
    assert len(held) == 2
    ovn.put(nad("a", name="tenant", subnets=after))
    ovn.passed()
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
