"""Point 20: clusters with v2alpha1, with v2, with both: asked what they serve before anything is read."""

import copy
from collections.abc import Iterator
from typing import Any

import pytest

from pools.models.clusters import ManagedResource
from tests.handlers.conftest import OLD, SHIPPED
from tests.handlers.fleet import Fleet, manifest
from tests.kube.fake import CRDS, FakeCluster
from tests.kube.fake.cluster import definitions

A, B = "10.0.0.0/16", "10.1.0.0/16"
LISTS = "/apis/cilium.io/{}/ciliumpodippools"


def _defined(served: str) -> dict[str, Any]:
    if served == "v2alpha1":
        return definitions(CRDS / f"{OLD}.yaml")[0]
    crd = copy.deepcopy(definitions(CRDS / f"{SHIPPED}.yaml")[0])
    if served == "v2":
        crd["spec"]["versions"] = [
            version for version in crd["spec"]["versions"] if version["name"] == "v2"
        ]
    return crd


@pytest.fixture(params=["v2alpha1", "v2", "both"])
def served(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def fleet(served: str) -> Iterator[Fleet]:
    with FakeCluster() as fake:
        fake.put(_defined(served))
        fake.crds("cilium.io_ciliumnodes")
        yield Fleet(fake)


def _read(fleet: Fleet) -> list[str]:
    """The paths that were asked, as far as they have to do with pools."""
    assert isinstance(fleet.server, FakeCluster)
    paths = [item.path for item in fleet.server.log if "/apis" in item.path]
    return [path for path in paths if not path.startswith("/apis/apiext")]


@pytest.mark.sample(3)
def test_the_version_that_is_served_is_read(fleet: Fleet, served: str) -> None:
    version = "v2alpha1" if served == "v2alpha1" else "v2"
    fleet.put(manifest("green", A, version=version))
    assert fleet.counted()["changed"] == 1
    assert fleet.cidrs("green") == [A]
    discovery, *later = _read(fleet)
    assert discovery == "/apis"
    assert LISTS.format(version) in later
    assert LISTS.format({"v2": "v2alpha1", "v2alpha1": "v2"}[version]) not in later
    assert fleet.counted()["changed"] == 0


@pytest.mark.sample(3)
def test_the_version_that_is_served_is_written(fleet: Fleet, served: str) -> None:
    version = "v2alpha1" if served == "v2alpha1" else "v2"
    fleet.manage(ManagedResource.POOLS, ManagedResource.CONVERSION)
    fleet.make("mine", B)
    assert fleet.counted()["written"] == 1
    assert isinstance(fleet.server, FakeCluster)
    assert {write.path for write in fleet.server.log.writes} == {LISTS.format(version) + "/mine"}
    assert fleet.there()["mine"]["apiVersion"] == f"cilium.io/{version}"
    assert fleet.counted()["written"] == 0


@pytest.mark.sample(3)
def test_an_upgrade_in_between(fleet: Fleet, served: str) -> None:
    """The same stored objects through another version: known by their uid."""
    version = "v2alpha1" if served == "v2alpha1" else "v2"
    fleet.put(manifest("green", A, version=version))
    fleet.passed()
    before = fleet.pool("green").pk
    both = definitions(CRDS / f"{SHIPPED}.yaml")[0]
    fleet.put(both)
    for _ in range(2):
        fleet.passed()
    assert (fleet.pool("green").pk, fleet.names(), fleet.findings()) == (before, ["green"], [])


@pytest.mark.sample(3)
def test_what_cannot_be_discovered_is_not_absent(fleet: Fleet, served: str) -> None:
    version = "v2alpha1" if served == "v2alpha1" else "v2"
    fleet.put(manifest("green", A, version=version))
    fleet.passed()
    assert isinstance(fleet.server, FakeCluster)
    for path in ("/apis$", f"/apis/cilium.io/{version}$"):
        fleet.server.faults.add(path=path, status=503, times=2)
        for _ in range(2):
            assert not fleet.passed().succeeded
        assert fleet.names() == ["green"]
    assert fleet.counted()["failed"] == 0
