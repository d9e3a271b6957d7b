"""Versions of the definition of pools, and pools that are converted from one to another."""

import copy
import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from pools.models import ManagedResource, ObservedObject
from tests.handlers.conftest import OLD, PROPOSAL, SHIPPED
from tests.handlers.fleet import Fleet, manifest, reserved
from tests.kube import gateways
from tests.kube.fake import CRDS, FakeCluster
from tests.kube.fake.cluster import definitions

A, B = "10.0.0.0/16", "10.1.0.0/16"
LISTS = "/apis/cilium.io/{}/ciliumpodippools"


def _defined(served: str) -> dict[str, Any]:
    if served == "v2alpha1":
        return definitions(CRDS / f"{OLD}.yaml")[0]
    crd = copy.deepcopy(definitions(CRDS / f"{SHIPPED}.yaml")[0])
    if served == "v2":
        versions = crd["spec"]["versions"]
        crd["spec"]["versions"] = [item for item in versions if item["name"] == "v2"]
    return crd


@pytest.fixture(params=["v2alpha1", "v2", "both"])
def served(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def version(served: str) -> str:
    """That is read and written."""
    return "v2alpha1" if served == "v2alpha1" else "v2"


@pytest.fixture
def served_fleet(served: str) -> Iterator[Fleet]:
    with FakeCluster() as fake:
        fake.put(_defined(served))
        fake.crds("cilium.io_ciliumnodes")
        yield Fleet(fake)


def _read(served_fleet: Fleet) -> list[str]:
    """The paths that were asked, as far as they have to do with pools."""
    assert isinstance(served_fleet.server, FakeCluster)
    paths = [item.path for item in served_fleet.server.log if "/apis" in item.path]
    return [path for path in paths if not path.startswith("/apis/apiext")]


@pytest.mark.sample(3)
def test_the_version_that_is_served_is_read(served_fleet: Fleet, version: str) -> None:
    served_fleet.put(manifest("green", A, version=version))
    assert served_fleet.counted()["changed"] == 1
    assert served_fleet.cidrs("green") == [A]
    discovery, *later = _read(served_fleet)
    assert discovery == "/apis"
    assert LISTS.format(version) in later
    assert LISTS.format({"v2": "v2alpha1", "v2alpha1": "v2"}[version]) not in later
    assert served_fleet.counted()["changed"] == 0


@pytest.mark.sample(3)
def test_the_version_that_is_served_is_written(served_fleet: Fleet, version: str) -> None:
    served_fleet.manage(ManagedResource.POOLS, ManagedResource.CONVERSION)
    served_fleet.make("mine", B)
    assert served_fleet.counted()["written"] == 1
    assert isinstance(served_fleet.server, FakeCluster)
    paths = {write.path for write in served_fleet.server.log.writes}
    assert paths == {LISTS.format(version) + "/mine"}
    assert served_fleet.there()["mine"]["apiVersion"] == f"cilium.io/{version}"
    assert served_fleet.counted()["written"] == 0


@pytest.mark.sample(3)
def test_an_upgrade_in_between(served_fleet: Fleet, version: str) -> None:
    """The same stored objects through another version: known by their uid."""
    served_fleet.follow(manifest("green", A, version=version))
    before = served_fleet.pool("green").pk
    both = definitions(CRDS / f"{SHIPPED}.yaml")[0]
    served_fleet.put(both)
    for _ in range(2):
        served_fleet.passed()
    assert served_fleet.pool("green").pk == before
    assert (served_fleet.names(), served_fleet.findings()) == (["green"], [])


@pytest.mark.sample(3)
def test_what_cannot_be_discovered_is_not_absent(served_fleet: Fleet, version: str) -> None:
    served_fleet.follow(manifest("green", A, version=version))
    assert isinstance(served_fleet.server, FakeCluster)
    for path in ("/apis$", f"/apis/cilium.io/{version}$"):
        served_fleet.server.faults.add(path=path, status=503, times=2)
        for _ in range(2):
            assert not served_fleet.passed().succeeded
        assert served_fleet.names() == ["green"]
    assert served_fleet.counted()["failed"] == 0


# --- Rule `v2-wins`: v2alpha1 alone is converted and never touched --------------------------------
#
# In the CRDs both versions are views of one stored object, so that nothing is converted. Two objects of
# one name exist where each version has a store of its own; the fake is made to answer so.
RANGE = reserved(A, ("10.0.0.0", "10.0.0.99"))


@pytest.fixture
def converting(fleet: Fleet) -> Fleet:
    fleet.manage(ManagedResource.CONVERSION)
    return fleet


def _old_store(fleet: Fleet, *items: dict[str, Any]) -> FakeCluster:
    """From now on v2alpha1 has these objects, and nothing else."""
    for number, item in enumerate(items):
        item["metadata"] |= {"uid": f"old-{number}", "resourceVersion": "1"}
    listed = {"apiVersion": "cilium.io/v2alpha1", "kind": "CiliumPodIPPoolList"}
    listed |= {"metadata": {"resourceVersion": "1"}, "items": list(items)}
    fake = fleet.server
    if not isinstance(fake, FakeCluster):
        pytest.skip("a real API server has one store for both versions")
    path = "^/apis/cilium.io/v2alpha1/ciliumpodippools"
    fake.faults.add(verb="list", path=path, times=None, body=json.dumps(listed).encode())
    return fake


@pytest.mark.sample(2)
@pytest.mark.parametrize(
    ("definition", "cidrs"), [(SHIPPED, [A, B]), (PROPOSAL, [{"cidr": A}, {"cidr": B}])]
)
def test_what_v2alpha1_has_alone_is_made_in_v2(
    converting: Fleet, definition: str, cidrs: list[Any]
) -> None:
    fake = _old_store(converting, manifest("old", A, B, version="v2alpha1"))
    assert converting.counted()["written"] == 1
    there = converting.there()["old"]
    assert there["apiVersion"] == "cilium.io/v2"
    assert there["spec"]["ipv4"]["cidrs"] == cidrs
    assert converting.counted()["written"] == 0
    assert (converting.cidrs("old"), converting.findings()) == ([A, B], [])
    assert not [write for write in fake.log.writes if "v2alpha1" in write.path]


def test_v2_wins_and_differences_are_warned_of(converting: Fleet) -> None:
    converting.put(manifest("green", A, pool=[RANGE]))
    _old_store(converting, manifest("green", A, B, version="v2alpha1"))
    for _ in range(2):
        assert converting.counted()["written"] == 0
    assert converting.cidrs("green") == [A]
    assert converting.findings() == [("versions_differ", "green")]


def test_what_cannot_be_converted_is_told(converting: Fleet) -> None:
    _old_store(converting, manifest("old", A, mask=8, version="v2alpha1"))
    converting.passed()
    assert (converting.there(), converting.findings()) == ({}, [("not_converted", "old")])


def test_without_the_managed_resource_nothing_is_converted(fleet: Fleet) -> None:
    _old_store(fleet, manifest("old", A, version="v2alpha1"))
    fleet.passed()
    assert fleet.there() == {}


def test_converted_objects_are_not_the_registers(converting: Fleet) -> None:
    _old_store(converting, manifest("old", A, version="v2alpha1"))
    converting.manage(ManagedResource.CONVERSION, ManagedResource.POOLS)
    for _ in range(2):
        converting.passed()
    assert converting.pool("old").follows_cluster
    assert converting.findings() == []


@pytest.mark.parametrize("definition", [PROPOSAL])
def test_an_object_whose_cidrs_a_version_hides_says_nothing(fleet: Fleet) -> None:
    """Written with objects, and then only v2alpha1 is served: it shows `cidrs: [{}]`."""
    pool = manifest("green")
    pool["spec"]["ipv4"]["cidrs"] = [{"cidr": A}]
    fleet.follow(pool)
    _serve_only_v2alpha1(fleet)
    fleet.passed()
    assert (fleet.cidrs("green"), fleet.problems()) == ([A], {})
    ObservedObject.objects.all().delete()  # as when the cluster is connected anew
    fleet.passed()
    assert fleet.problems() == {"green": "written_in_another_shape"}
    assert fleet.cidrs("green") == [A]


def _serve_only_v2alpha1(fleet: Fleet) -> None:
    crd = copy.deepcopy(definitions(CRDS / f"{PROPOSAL}.yaml")[0])
    crd["spec"]["versions"][0]["served"] = False
    fleet.server.put(crd)
    until = time.monotonic() + 20  # a real server takes a moment
    with gateways.to(fleet.server) as gateway:
        while gateway.served([gateways.POOLS]) and time.monotonic() < until:
            time.sleep(0.05)
