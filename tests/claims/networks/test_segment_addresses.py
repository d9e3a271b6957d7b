"""Addresses of segments, of one network and shared by several."""

import pytest

from claims.core.ipamclaims import dialects
from claims.ipamclaims import allocation
from claims.models import IndexEntry, IPAMClaim, Network
from pools.models import Alert, Block, Finding, Pool, PoolCIDR, ReservedRange
from pools.platform.conditions import evaluation
from pools.register import pools
from tests import factories
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.claims.networks.ovn import Ovn, nad
from tests.edges.api import Api, holder, refused
from tests.kube.manifests import Manifest

C = "02:00:00:00:00:0c"


@pytest.fixture
def left_network(ovn: Ovn) -> Network:
    ovn.follow(localnet("left"), localnet("right"))
    Pool.objects.update(cooldown_seconds=0)
    return ovn.network("left")


def other() -> Network:
    return Network.objects.get(name="right")


def granted(network: Network, vm: str, *requested: str) -> tuple[list[str], str]:
    claim = worlds.claim(network, vm, namespace="default", ips_requested=list(requested))
    allocation.grant_addresses([claim], dialects.SHIPPED, author=worlds.BY)
    claim.refresh_from_db()
    return claim.ips, claim.conditions[0]["message"]


def shared(network: Network) -> dict[str, str]:
    """The addresses of the network's pool that are held for another network."""
    rows = Block.objects.filter(pool=network.pool, state="held", holder_kind="segment")
    return {str(row.cidr).partition("/")[0]: row.holder_id for row in rows}


def test_claims_get_no_address_that_an_entry_a_claim_or_a_workload_has(
    left_network: Network,
) -> None:
    worlds.entry(worlds.ippool(left_network), A, "10.77.0.1/24", vm="a", namespace="default")
    worlds.claim(left_network, "b", "10.77.0.2/24", namespace="default")
    worlds.workload(left_network, "c", C, "10.77.0.3/24", namespace="default")
    assert granted(other(), "web")[0] == ["10.77.0.4/24"]
    assert granted(left_network, "db")[0] == ["10.77.0.5/24"]
    assert granted(other(), "cache")[0] == ["10.77.0.6/24"]
    assert shared(left_network) == {"10.77.0.4": "right", "10.77.0.6": "right"}


def test_a_claim_that_asks_for_it_is_refused_but_for_the_same_vm(left_network: Network) -> None:
    worlds.entry(worlds.ippool(left_network), A, "10.77.0.1/24", vm="a", namespace="default")
    ips, message = granted(other(), "web", "10.77.0.1/24")
    assert (ips, "10.77.0.1" in message) == ([], True)
    assert granted(other(), "a", "10.77.0.1/24")[0] == ["10.77.0.1/24"]
    assert shared(other()) == {}
    assert shared(left_network) == {}


def test_the_allocator_leaves_it_out_and_gives_it_back(left_network: Network) -> None:
    claim = worlds.claim(left_network, "a", "10.77.0.1/24", namespace="default")
    pool = other().pool
    assert pool is not None
    assert factories.cidrs(pool, 1) == ["10.77.0.2/32"]
    body = holder("x") | {"cidr": "10.77.0.1/32"}
    refused(Api()("POST", f"pools/{pool.pk}/allocations/", body), 409, "already_allocated")
    with worlds.events.recorded_by(worlds.BY):
        worlds.index.remove(claims=[claim.pk])
        claim.delete()
    assert shared(other()) == {}
    assert factories.take(pool, cidr="10.77.0.1/32")["cidr"] == "10.77.0.1/32"


def test_a_direct_allocation_is_known_to_the_other_network(ovn: Ovn, left_network: Network) -> None:
    assert left_network.pool is not None
    host = factories.holder("printer", kind="host")
    assert factories.take(left_network.pool, host)["cidr"] == "10.77.0.1/32"
    assert granted(other(), "web")[0] == ["10.77.0.2/24"]
    draft = drafts.draft(other(), drafts.row("b", B, "10.77.0.1"), namespace="default")
    assert drafts.statuses(draft)[1] == ("conflict", {"already_allocated"})
    ippool = worlds.ippool(other())
    body = {"mac": B, "ips": ["10.77.0.1/24"], "vm": "b", "namespace": "default"}
    entry = Api().create(f"ippools/{ippool.pk}/entries/", body)
    assert entry["duplicates"][0]["with"][0]["name"] == "host printer"
    factories.cidrs(left_network.pool, 1)
    ovn.passed()
    assert "10.77.0.3" in shared(other())


def test_an_entry_is_told_who_has_it(left_network: Network) -> None:
    worlds.claim(left_network, "a", "10.77.0.1/24", namespace="default")
    body = {"mac": B, "ips": ["10.77.0.1/24"], "vm": "b", "namespace": "default"}
    entry = Api().create(f"ippools/{worlds.ippool(other()).pk}/entries/", body)
    (duplicate,) = entry["duplicates"]
    assert [item["vm"] for item in duplicate["with"]] == ["a"]


def test_imports_neither_take_nor_draw_it(left_network: Network) -> None:
    worlds.claim(left_network, "a", "10.77.0.1/24", namespace="default")
    rows = drafts.row("b", B, "10.77.0.1"), drafts.row("c", C)
    draft = drafts.draft(other(), *rows, namespace="default")
    assert drafts.statuses(draft)[1] == ("conflict", {"duplicate_ip"})
    row = Api()("PATCH", f"imports/{draft.pk}/rows/2/", {"free_address": True}).json()
    assert row["ips"] == ["10.77.0.2/24"]


def test_ranges_reserved_on_one_are_reserved_on_the_other(ovn: Ovn, left_network: Network) -> None:
    cidr = PoolCIDR.objects.get(pool=left_network.pool)
    entry = factories.entry(SUBNET, "10.77.0.1-10.77.0.9").reserved[0]
    reserved = pools.reserve(cidr.pk, entry, author=worlds.BY, reason="routers")
    assert granted(other(), "web")[0] == ["10.77.0.10/24"]
    body = {"mac": B, "ips": ["10.77.0.5/24"], "vm": "b", "namespace": "default"}
    answer = Api().create(f"ippools/{worlds.ippool(other()).pk}/entries/", body)
    assert answer["duplicates"][0]["with"][0]["type"] == "reserved_range"
    ovn.passed()
    assert ReservedRange.objects.filter(pool=left_network.pool).count() == 1  # not reflected back
    pools.unreserve(getattr(reserved, "pk", reserved), author=worlds.BY)
    ovn.passed()
    assert not ReservedRange.objects.filter(pool=other().pool).exists()


def test_excluded_subnets_of_one_are_reserved_on_the_other(ovn: Ovn, left_network: Network) -> None:
    ovn.follow(localnet("left", excludeSubnets="10.77.0.0/29"))
    assert granted(other(), "web")[0] == ["10.77.0.8/24"]


def test_networks_that_no_longer_share_a_segment_share_no_addresses(
    ovn: Ovn, left_network: Network
) -> None:
    worlds.claim(left_network, "a", "10.77.0.1/24", namespace="default")
    assert shared(other()) == {"10.77.0.1": "left"}
    ovn.follow(localnet("right", vlanID=9))
    assert shared(other()) == {}
    assert granted(other(), "web", "10.77.0.1/24")[0] == ["10.77.0.1/24"]
    assert IPAMClaim.objects.filter(ips=["10.77.0.1/24"]).count() == 2


# --- Two localnet networks on one physical network and VLAN share their addresses -----------------
A, B = "02:00:00:00:00:0a", "02:00:00:00:00:0b"
SUBNET = "10.77.0.0/24"


def localnet(name: str, **config: object) -> Manifest:
    values = {
        "name": name, "topology": "localnet", "role": None, "subnets": SUBNET,
        "physicalNetworkName": "physnet", "vlanID": 7,
    }  # fmt: skip
    return nad(name, "default", **(values | config))


def duplicates() -> set[str]:
    flagged = IndexEntry.objects.filter(duplicate_ip=True)
    return {f"{row.network.name} {row.address}" for row in flagged.select_related("network")}


@pytest.mark.exhaustive
def test_one_address_on_both_is_a_duplicate(ovn: Ovn) -> None:
    ovn.follow(localnet("left"), localnet("right"))
    (finding,) = Finding.objects.filter(code="shared_segment")
    assert "left and right are one segment" in finding.message
    assert SUBNET in finding.message
    remaining, right = ovn.network("left"), ovn.network("right")
    first = worlds.claim(remaining, "web", "10.77.0.1/24", namespace="default")
    worlds.claim(right, "db", "10.77.0.1/24", namespace="default")
    worlds.claim(right, "other", "10.77.0.9/24", namespace="default")
    assert duplicates() == {"left 10.77.0.1", "right 10.77.0.1"}
    shown = Api()("GET", f"ipamclaims/{first.pk}/").json()
    assert shown["state"] == "conflict"
    assert shown["duplicates"][0]["with"][0]["vm"] == "db"
    evaluation.evaluate()
    (alert,) = Alert.objects.filter(code="duplicate_address")
    assert str(alert).endswith(": 2 IPs")


@pytest.mark.sample(3)
@pytest.mark.parametrize(
    "config", [{"vlanID": 8}, {"vlanID": None}, {"physicalNetworkName": "other"}]
)
def test_another_vlan_or_physical_network_is_another_segment(
    ovn: Ovn, config: dict[str, object]
) -> None:
    ovn.follow(localnet("left"), localnet("right", **config))
    assert not Finding.objects.filter(code="shared_segment").exists()
    for name, mac in (("left", A), ("right", B)):
        worlds.workload(ovn.network(name), name, mac, "10.77.0.1")
    assert duplicates() == set()


@pytest.mark.exhaustive
def test_a_segment_that_is_shared_later_and_not_any_more(ovn: Ovn) -> None:
    ovn.follow(localnet("left"), localnet("right", vlanID=8))
    for name, mac in (("left", A), ("right", B)):
        worlds.workload(ovn.network(name), name, mac, "10.77.0.1")
    ovn.follow(localnet("right"))
    assert duplicates() == {"left 10.77.0.1", "right 10.77.0.1"}
    ovn.follow(localnet("right", vlanID=9))
    assert duplicates() == set()
    assert Network.objects.count() == 2
