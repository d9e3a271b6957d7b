"""Clusters of this machine for the tests of the edges."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.kube.fake import FakeCluster


@pytest.fixture
def fake(settings: Any) -> Iterator[FakeCluster]:
    """A cluster of this test alone, with the definitions of Cilium; loopback is allowed."""
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
        yield running


@pytest.fixture
def other(settings: Any) -> Iterator[FakeCluster]:
    """Another cluster."""
    with FakeCluster() as running:
        yield running
