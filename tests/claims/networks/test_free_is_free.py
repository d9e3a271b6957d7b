"""Addresses of networks that nobody is offered: those in use, those kept, those of segments."""

from ipaddress import ip_network
from typing import Any

import pytest

from claims.address_index import index
from claims.core.ipamclaims import dialects
from claims.imports import drafts as import_drafts
from claims.ipamclaims import allocation
from claims.models import Entry, IPAMClaim, Network
from claims.networks import networks as networks_service, pools as network_pools
from claims.waves import readiness, waves
from pools.clusters import connections
from pools.core import errors
from pools.models import AddressSpace, Cluster, Connection, Finding, ObservedCIDR, ReservedRange
from pools.platform import database, events
from pools.register import overlaps
from pools.register.plan import containers, free_space, tree
from tests import factories, people
from tests.claims import worlds
from tests.claims.imports import drafts
from tests.claims.imports.drafts import mac, row
from tests.claims.networks.ovn import Ovn, cudn, nad
from tests.edges.api import Api
from tests.kube.manifests import Manifest

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
    place = {"server": "https://192.0.2.1:6443", "due_at": database.now()}
    connection = Connection.objects.create(cluster=network.cluster, **place)
    connections.disconnect(connection, author=factories.BY)
    assert _free() == _rest(0)


# --- What OVN-Kubernetes keeps of a network is handed out by nobody and flagged in entries and
# imports
FIRST = "192.168.55"


def _localnet(**part: Any) -> Manifest:
    created = cudn("prod")
    localnet = {"role": "Secondary", "physicalNetworkName": "physnet", **part}
    created["spec"]["network"] = {"topology": "Localnet", "localnet": localnet}
    return created


# Manifest, kept addresses with their types, and the last byte of the first address that a claim gets.
NETWORKS: dict[str, tuple[Manifest, dict[str, str], int]] = {
    "localnet": (
        _localnet(subnets=[f"{FIRST}.0/24", "fd00::/64"], excludeSubnets=[f"{FIRST}.0/28", "fd00::/124"]),
        {f"{FIRST}.1": "excluded", f"{FIRST}.15": "excluded", "fd00::3": "excluded"},
        16,
    ),
    "nad": (
        nad(role=None, subnets=f"{FIRST}.0/24,fd00::/64", excludeSubnets=f"{FIRST}.0/30, {FIRST}.4/30,fd00::/125"),
        {f"{FIRST}.1": "excluded", f"{FIRST}.7": "excluded", "fd00::7": "excluded"},
        8,
    ),
    "management": (
        cudn("prod", f"{FIRST}.0/24", "fd00::/64"),
        {f"{FIRST}.1": "gateway", f"{FIRST}.2": "management", "fd00::2": "management"},
        3,
    ),
    "gateway of the second address": (
        cudn("prod", f"{FIRST}.0/24", defaultGatewayIPs=[f"{FIRST}.2"]),
        {f"{FIRST}.1": "management", f"{FIRST}.2": "gateway"},
        3,
    ),
    "infrastructure": (
        cudn("prod", f"{FIRST}.0/24", infrastructureSubnets=[f"{FIRST}.240/28"]),
        {f"{FIRST}.240": "gateway", f"{FIRST}.241": "management", f"{FIRST}.250": "infrastructure"},
        1,
    ),
    "join subnet": (
        nad(subnets=f"{FIRST}.0/24", excludeSubnets=f"{FIRST}.0/29", joinSubnet=f"{FIRST}.0/30"),
        {f"{FIRST}.3": "join_subnet", f"{FIRST}.7": "excluded"},
        8,
    ),
}  # fmt: skip
networks = pytest.mark.parametrize("case", NETWORKS)


@pytest.fixture
def network_case(ovn: Ovn, case: str) -> tuple[Network, dict[str, str], int]:
    manifest, kept_types, first = NETWORKS[case]
    ovn.follow(manifest)
    return ovn.network(), kept_types, first


def _claimed(claim: IPAMClaim) -> IPAMClaim:
    allocation.grant_addresses([claim], dialects.PROPOSED, author=worlds.BY)
    claim.refresh_from_db()
    return claim


@pytest.mark.exhaustive
@networks
def test_nobody_gets_it_by_chance(network_case: tuple[Network, dict[str, str], int]) -> None:
    network, kept_types, first = network_case
    assert _claimed(worlds.claim(network, "vm")).ips[0] == f"{FIRST}.{first}/24"
    assert factories.take(network.pool, family=4)["cidr"] == f"{FIRST}.{first + 1}/32"
    draft = drafts.draft(network, row("one", mac(1)))
    (free, *_) = import_drafts.assign_free_addresses(draft.pk, 1, author=worlds.BY).ips
    assert free == f"{FIRST}.{first + 2}/24"
    for address in kept_types:
        cidr = f"{address}/{32 if '.' in address else 128}"
        with pytest.raises(errors.ReservedAddress):
            factories.take(network.pool, cidr=cidr)


@pytest.mark.exhaustive
@networks
def test_whoever_names_it_is_told(network_case: tuple[Network, dict[str, str], int]) -> None:
    network, kept_types, _ = network_case
    ippool = worlds.ippool(network)
    api = Api()
    for number, (address, type_) in enumerate(kept_types.items(), 1):
        ip = f"{address}/{24 if '.' in address else 64}"
        body = {"mac": mac(number), "ips": [ip], "vm": f"vm{number}", "namespace": "blue"}
        (duplicate,) = api.create(f"ippools/{ippool.pk}/entries/", body)["duplicates"]
        assert type_ in {other["type"] for other in duplicate["with"]}, address
        refused = _claimed(worlds.claim(network, f"c{number}", ips_requested=[address]))
        assert refused.ips == []
        assert refused.conditions[0]["reason"] == "IPAlreadyExists"
    ips = list(kept_types)
    draft = drafts.draft(network, *(row(f"i{n}", mac(50 + n), ip) for n, ip in enumerate(ips, 1)))
    for number, (status, codes) in drafts.statuses(draft).items():
        assert kept_types[ips[number - 1]] in codes, (status, codes)
        assert status in {"conflict", "invalid"}


@pytest.mark.parametrize("case", ["management"])
def test_a_range_that_somebody_removed_is_not_handed_out(
    network_case: tuple[Network, dict[str, str], int],
) -> None:
    """Before the next sync run, too."""
    network, _, first = network_case
    with events.recorded_by(worlds.BY):
        ReservedRange.objects.filter(pool=network.pool).delete()
    claim = _claimed(worlds.claim(network, "vm"))
    assert claim.ips == [f"{FIRST}.{first}/24", f"fd00::{first}/64"]
    reasons = ReservedRange.objects.filter(pool=network.pool).values_list("reason", flat=True)
    assert set(reasons) == {"default gateway of the network", "management port of the network"}


def test_reserved_subnets_are_given_is_note_only(ovn: Ovn) -> None:
    ovn.follow(cudn("prod", f"{FIRST}.0/24", reservedSubnets=[f"{FIRST}.4/30", f"{FIRST}.8/29"]))
    network = ovn.network()
    assert _claimed(worlds.claim(network, "one")).ips == [f"{FIRST}.3/24"]
    assert _claimed(worlds.claim(network, "two")).ips == [f"{FIRST}.16/24"]
    requested = _claimed(worlds.claim(network, "asked", ips_requested=[f"{FIRST}.7"]))
    assert requested.ips == [f"{FIRST}.7/24"]


def test_a_network_that_contradicts_itself_is_a_finding(ovn: Ovn) -> None:
    ovn.follow(cudn("prod", f"{FIRST}.0/24", reservedSubnets=[f"{FIRST}.0/28"]))
    (finding,) = Finding.objects.filter(code="kept_twice")
    assert (finding.subject, finding.severity) == ("cluster_udn_prod", "error")
    assert f"The reserved subnet {FIRST}.0/28 and the gateway {FIRST}.1 overlap" in finding.message
    network = ovn.network()
    assert "kept_twice" in [note.code for note in networks_service.static_vm_check(network).notes]
    wave = waves.create(network.cluster, "first", author=worlds.BY)
    worlds.entry(worlds.ippool(network), mac(1), f"{FIRST}.50/24", vm="web", namespace="default")
    waves.add(wave.pk, [("default", "web")], author=worlds.BY)
    (machine,) = readiness.wave_readiness(wave).machines
    assert "network_unfit" in [code for code, _ in machine.reasons]
