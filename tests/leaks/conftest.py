"""A register of one cluster, and the clock with which observations are put apart."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.fake import FakeCluster
from tests.leaks import vm_world
from tests.leaks.feeds import Feed, Nodes
from tests.leaks.vm_world import Machines
from tests.pools.conftest import Clock

GRACE = 900


@pytest.fixture
def clock(db: None, settings: Any) -> Clock:
    settings.IPAM_LEAK_GRACE_SECONDS = GRACE
    return Clock()


@pytest.fixture
def feed(clock: Clock) -> Feed:
    """What tooling says of the instances of a cluster."""
    return Feed(clock)


@pytest.fixture
def fake(db: None) -> Iterator[FakeCluster]:
    """A cluster of this test alone, with the definitions of Cilium."""
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
        yield running


@pytest.fixture
def nodes(fake: FakeCluster, clock: Clock) -> Nodes:
    """A connected cluster with a pool of pod CIDRs."""
    return Nodes(fake, clock)


@pytest.fixture
def vms(clock: Clock) -> Iterator[Machines]:
    """A connected cluster with one VM network, KubeVirt and claims."""
    with FakeCluster() as running:
        running.crds(*vm_world.CRDS)
        yield Machines(running, clock)
