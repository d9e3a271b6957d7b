"""Nothing that a VM network without subnets uses is inside of what is free on the address plan (rule `free-is-free`)."""

from ipaddress import ip_network

import pytest

from claims.address_index import index
from claims.models import Entry, Network
from claims.networks import pools as network_pools
from pools.clusters import connections
from pools.models import AddressSpace, Cluster, Connection, ObservedCIDR
from pools.platform import database
from pools.register import overlaps
from pools.register.plan import containers, free_space, tree
from tests import factories, people
from tests.claims import worlds

WHOLE = ip_network("10.0.0.0/22")


@pytest.fixture
def network() -> Network:
    containers.create(WHOLE, author=factories.BY)
    return worlds.network("legacy", subnets=())


def _free(cluster: Cluster | None = None) -> list[str]:
    """The free /24, as a form offers them and as the plan shows them."""
    space = AddressSpace.objects.get(cluster=cluster, name="") if cluster else None
    offers = [str(cidr) for cidr, _ in free_space.offer_prefixes(24, space)]
    level = tree.read_level(free_space.fleet_scope(), WHOLE)
    shown = [
        str(part)
        for row in level.rows
        if row.free or row.cidr == WHOLE
        for part in row.cidr.subnets(new_prefix=max(24, row.cidr.prefixlen))
        if part.prefixlen == 24
    ]
    assert offers == shown
    return offers


def _rest(*used: int) -> list[str]:
    return [f"10.0.{number}.0/24" for number in range(4) if number not in used]


def test_addresses_of_entries_claims_and_workloads(network: Network) -> None:
    assert _free() == _rest()
    entry = worlds.entry(worlds.ippool(network), "02:00:00:00:00:01", "10.0.0.9/24")
    claim = worlds.claim(network, "web", "10.0.1.9/24")
    worlds.workload(network, "db", "02:00:00:00:00:03", "10.0.2.9")
    assert _free() == _free(network.cluster) == _rest(0, 1, 2)
    row = ObservedCIDR.objects.get(cidr="10.0.0.9/32")
    assert (row.kind, row.name, row.cluster) == ("VM network", "legacy", network.cluster)
    assert overlaps.find_overlapping_networks(ip_network("10.0.0.0/24"))
    assert overlaps.find_overlaps() == []
    page = people.browser().get(f"/admin/pools/observedcidr/{row.pk}/change/")
    assert "legacy" in page.content.decode()

    index.remove(entries=[entry.pk], claims=[claim.pk])
    assert _free() == _rest(2)


def test_an_address_is_free_when_nobody_names_it_any_more(network: Network) -> None:
    entry = worlds.entry(worlds.ippool(network), "02:00:00:00:00:01", "10.0.0.9/24")
    worlds.claim(network, "web", "10.0.0.9/24")
    index.remove(entries=[entry.pk])
    assert _free() == _rest(0)
    changed = Entry.objects.get(pk=entry.pk)
    changed.ips = ["10.0.3.9/24"]
    index.write(entries=[changed])
    assert _free() == _rest(0, 3)
    other = worlds.network("other", subnets=(), of=network.cluster)
    worlds.workload(other, "db", "02:00:00:00:00:03", "10.0.2.9")
    assert _free() == _rest(0, 2, 3)
    other.delete()
    assert _free() == _rest(0, 3)


def test_a_claim_that_only_requests_an_address_holds_nothing(network: Network) -> None:
    worlds.claim(network, "web", ips_requested=["10.0.1.9/24"])
    assert _free() == _rest()


def test_a_network_that_gets_subnets_has_these_on_the_plan(network: Network) -> None:
    worlds.entry(worlds.ippool(network), "02:00:00:00:00:01", "10.0.0.9/24")
    network.subnets = ["10.0.0.0/23"]
    network.save()
    assert network_pools.sync_pool(network, author=factories.BY)
    assert not ObservedCIDR.objects.exists()
    assert _free() == _rest(0, 1)
    Network.objects.filter(pk=network.pk).update(pool=None)
    assert [str(row.cidr) for row in ObservedCIDR.objects.all()] == ["10.0.0.9/32"]


def test_a_cluster_that_is_disconnected_still_uses_them(network: Network) -> None:
    worlds.entry(worlds.ippool(network), "02:00:00:00:00:01", "10.0.0.9/24")
    connection = Connection.objects.create(
        cluster=network.cluster, server="https://192.0.2.1:6443", due_at=database.now()
    )
    connections.disconnect(connection, author=factories.BY)
    assert _free() == _rest(0)
