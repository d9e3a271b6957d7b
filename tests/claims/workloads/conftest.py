from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.claims.networks import ovn
from tests.kube.fake import FakeCluster

if TYPE_CHECKING:
    from tests.claims.workloads.kubevirt import KubeVirt


@pytest.fixture
def server(settings: Any) -> Iterator[FakeCluster]:
    """A cluster with the definitions of Multus and KubeVirt."""
    from tests.claims.workloads import kubevirt

    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    with FakeCluster() as running:
        running.crds(*kubevirt.CRDS)
        yield running


@pytest.fixture
def cluster(server: FakeCluster, db: None) -> KubeVirt:
    """The same as a cluster of the register, with one primary network in the namespace default."""
    from tests.claims.workloads import kubevirt

    found = kubevirt.KubeVirt(server)
    found.put(ovn.nad())
    return found
