from typing import Any

import pytest

from tests.claims.networks.ovn import Ovn


@pytest.fixture
def definitions() -> tuple[str, ...]:
    """Those of OVN-Kubernetes and Multus."""
    return (
        "k8s.ovn.org_clusteruserdefinednetworks",
        "k8s.ovn.org_userdefinednetworks",
        "k8s.cni.cncf.io_network-attachment-definitions",
    )


@pytest.fixture
def ovn(server: Any, db: None) -> Ovn:
    """The server as an observed cluster of the register."""
    return Ovn(server)
