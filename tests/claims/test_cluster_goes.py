"""A cluster goes with its networks, IPPools, entries and claims, or not at all."""

import dataclasses

import pytest

from claims.models import IPAMClaim, IPPool, Network
from pools.core import errors
from pools.models import Cluster
from pools.register import clusters
from tests.claims import worlds


def test_not_while_addresses_are_held(network: Network) -> None:
    worlds.entry(worlds.ippool(network), "00:1a:4b:00:00:0a", "10.0.0.5/24")
    with pytest.raises(errors.PoolInUse):
        clusters.remove(network.cluster, author=worlds.BY)
    assert Network.objects.exists()


def test_by_force_with_all_that_it_had(network: Network) -> None:
    worlds.entry(worlds.ippool(network), "00:1a:4b:00:00:0a", "10.0.0.5/24")
    worlds.claim(network, "one", "10.0.0.6/24")
    worlds.workload(network, "one", "00:1a:4b:00:00:0b", "10.0.0.6/24")
    author = dataclasses.replace(worlds.BY, reason="the site burnt down")
    clusters.remove(network.cluster, author=author, force=True)
    for model in (Cluster, Network, IPPool, IPAMClaim):
        assert not model.objects.exists()


def test_without_anything_held(network: Network) -> None:
    worlds.ippool(network)
    clusters.remove(network.cluster, author=worlds.BY)
    assert not IPPool.objects.exists()
