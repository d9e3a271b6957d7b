"""Networks that are made here: written to a managed cluster once, and otherwise only noted."""

from __future__ import annotations

from typing import Any

import pytest

from claims.address_index import index
from claims.core import resources
from claims.core.networks.rules import render_selector
from claims.core.networks.udn import UDN
from claims.models import Network
from claims.networks import networks
from pools.core import errors
from pools.models import AddressSpace, Pool
from tests import factories
from tests.claims import worlds
from tests.claims.networks.ovn import SUBNET, Ovn, cudn, nad
from tests.kube import gateways
from tests.pools.conftest import Clock

BY = factories.BY


def desired_udn(name: str = "prod", **more: Any) -> UDN:
    values = {"topology": "layer2", "role": "primary", "ipam_mode": "Enabled"}
    values |= {"lifecycle": "Persistent", "subnets": (SUBNET,), **more}
    selector = render_selector(["blue"])
    return UDN(f"cluster_udn_{name}", "cudn", name, namespace_selector=selector, **values)


def make(ovn: Ovn, **more: Any) -> Network:
    settings = {name: more.pop(name) for name in ("applied", "description") if name in more}
    return networks.create_network(ovn.cluster, desired_udn(**more), author=BY, **settings)


def test_it_is_written_once(ovn: Ovn) -> None:
    ovn.write_networks()
    more = {"default_gateways": ("10.0.0.9",), "reserved_subnets": ("10.0.1.0/24",)}
    created = make(ovn, applied=True, **more)
    assert ovn.subnets() == [SUBNET]
    assert ovn.counted()["written"] == 1
    spec = ovn.there("prod")["spec"]
    assert spec["namespaceSelector"] == {"matchLabels": {"kubernetes.io/metadata.name": "blue"}}
    part = {"role": "Primary", "subnets": [SUBNET], "ipam": {"lifecycle": "Persistent"}}
    part |= {"defaultGatewayIPs": ["10.0.0.9"], "reservedSubnets": ["10.0.1.0/24"]}
    assert spec["network"] == {"topology": "Layer2", "layer2": part}
    for _ in range(2):
        assert ovn.counted()["written"] == 0
    network = ovn.network()
    assert network.pk == created.pk
    assert network.uid == ovn.there("prod")["metadata"]["uid"]
    assert (network.applied, network.follows_cluster) == (True, False)
    assert (ovn.drift(), ovn.findings()) == ([], [])


@pytest.mark.exhaustive
def test_the_selector_can_be_changed_and_is_kept(ovn: Ovn) -> None:
    ovn.write_networks()
    network = make(ovn, applied=True)
    ovn.passed()
    ovn.passed()
    network = ovn.network()
    changed = {"namespace_selector": render_selector(["blue", "red"]), "description": "d"}
    networks.change(network, changed, author=BY)
    assert ovn.counted()["written"] == 1
    assert ovn.there("prod")["spec"]["namespaceSelector"] == render_selector(["blue", "red"])
    assert ovn.counted()["written"] == 0


@pytest.mark.exhaustive
def test_an_object_that_is_another_network_is_not_written(ovn: Ovn) -> None:
    ovn.write_networks()
    ovn.put(cudn("prod", "10.7.0.0/16"))
    make(ovn, applied=True)
    assert ovn.counted()["written"] == 0
    assert ovn.network().subnets == [SUBNET]
    assert ovn.findings() == [("network_differs", "cluster_udn_prod")]
    assert ("prod", "spec.network.layer2.subnets") in ovn.drift()
    networks.change(ovn.network(), {"applied": False}, author=BY)
    ovn.follow(cudn("prod", "10.7.0.0/16", mtu=1400))
    assert (ovn.network().subnets, ovn.network().follows_cluster) == (["10.7.0.0/16"], True)
    assert (ovn.findings(), ovn.drift()) == ([], [])


def test_one_that_was_deleted_in_the_cluster_is_made_again(ovn: Ovn, clock: Clock) -> None:
    ovn.write_networks()
    make(ovn, applied=True)
    ovn.passed()
    ovn.lose(clock, "clusteruserdefinednetworks")
    ovn.passed()
    assert ovn.there("prod")
    assert ovn.network().gone_at is None


def test_one_that_was_deleted_while_nothing_was_written_is_made_again(
    ovn: Ovn, clock: Clock
) -> None:
    ovn.write_networks()
    make(ovn, applied=True)
    ovn.passed()
    ovn.passed()
    ovn.observe()
    ovn.remove("clusteruserdefinednetworks", "prod")
    ovn.passed()
    clock.advance(40)
    ovn.write_networks()
    assert ovn.counted()["written"] == 1
    assert (ovn.network().gone_at, ovn.subnets()) == (None, [SUBNET])


def test_another_network_is_not_written_over_even_where_it_could_be(ovn: Ovn) -> None:
    """The API server of this test has no CEL rules, and the fields are our own."""
    ovn.write_networks()
    with gateways.to(ovn.server) as gateway:
        gateway.apply(resources.CLUSTER_UDN, cudn("prod", "10.7.0.0/16"), manager="cadastre")
    make(ovn, applied=True)
    assert ovn.counted()["written"] == 0
    assert ovn.there("prod")["spec"]["network"]["layer2"]["subnets"] == ["10.7.0.0/16"]


def test_nothing_is_written_to_an_observed_cluster(ovn: Ovn) -> None:
    with pytest.raises(errors.NotManaged):
        make(ovn, applied=True)
    make(ovn, description="the one of the migration")
    assert ovn.counted()["written"] == 0
    assert ovn.findings() == [("network_not_in_cluster", "cluster_udn_prod")]
    notes = networks.static_vm_check(ovn.network()).notes
    assert [note.code for note in notes] == ["not_in_cluster"]
    ovn.follow(cudn("prod", "10.7.0.0/16"))
    network = ovn.network()
    assert (network.subnets, network.follows_cluster) == (["10.7.0.0/16"], True)
    assert (network.description, ovn.subnets()) == ("the one of the migration", ["10.7.0.0/16"])
    assert ovn.findings() == []


def test_deleting_one_that_is_used(ovn: Ovn) -> None:
    network = make(ovn)
    ippool = worlds.ippool(network)
    claim = worlds.claim(network, "one", "10.0.0.7/16")
    with pytest.raises(errors.NetworkInUse, match=r"the IPPool blue .*1 IPAMClaim \(blue/one"):
        networks.delete(ovn.network(), author=BY)
    ippool.delete()
    index.remove(claims=[claim.pk])
    claim.delete()
    pool = ovn.network().pool
    assert pool is not None
    block = factories.take(pool)
    with pytest.raises(errors.PoolInUse):
        networks.delete(ovn.network(), author=BY)
    factories.give_back(block)
    networks.delete(ovn.network(), author=BY)
    assert (ovn.names(), Pool.objects.count()) == ([], 0)
    assert AddressSpace.objects.get(cluster=ovn.cluster).name == ""


@pytest.mark.exhaustive
def test_the_cluster_decides_what_it_has(ovn: Ovn, clock: Clock) -> None:
    ovn.follow(cudn(), nad())
    command = "kubectl delete clusteruserdefinednetwork prod"
    with pytest.raises(errors.ClusterDecides, match=command):
        networks.delete(ovn.network(), author=BY)
    ovn.lose(clock, "clusteruserdefinednetworks")
    with pytest.raises(errors.NetworkInUse, match="1 network attachment definition"):
        networks.delete(ovn.network(), author=BY)
    ovn.lose(clock, "network-attachment-definitions", namespace="default")
    networks.delete(ovn.network(), author=BY)
    assert ovn.names() == []
