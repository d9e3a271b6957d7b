from __future__ import annotations

import pathlib
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.claims.ippools.fleet import Fleet
    from tests.kube.api import Cluster

CRD = pathlib.Path(__file__).parents[3] / "deploy/crds/ippool.k8s.cni.cncf.io.yaml"


@pytest.fixture
def definitions() -> tuple[pathlib.Path, ...]:
    """Our own."""
    return (CRD,)


@pytest.fixture
def fleet(server: Cluster, db: None) -> Fleet:
    """The server as an observed cluster of the register."""
    from tests.claims.ippools.fleet import Fleet

    return Fleet(server)
