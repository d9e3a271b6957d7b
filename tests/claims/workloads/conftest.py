from typing import Any

import pytest

from tests.claims.networks import ovn
from tests.claims.workloads.kubevirt import KubeVirt


@pytest.fixture
def definitions() -> tuple[str, ...]:
    """Those of Multus and KubeVirt."""
    from tests.claims.workloads import kubevirt

    return kubevirt.CRDS


@pytest.fixture
def cluster(server: Any, db: None) -> KubeVirt:
    """A cluster of the register, with one primary network in the namespace default."""
    from tests.claims.workloads import kubevirt

    virt = kubevirt.KubeVirt(server)
    virt.put(ovn.nad())
    return virt
