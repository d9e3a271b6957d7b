"""One CRD stores an object once: what its served v2 cannot read is found, with the manifest that mends it."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from pools.models import Connection, Finding, ManagedResource
from tests import commands
from tests.handlers.fleet import manifest
from tests.kube.real import RealCluster
from tests.real import sites
from tests.real.owned_pools import KIND, OWNERS, A, B

pytestmark = pytest.mark.django_db


def _findings(connection: Connection, kube: RealCluster) -> list[Finding]:
    assert sites.reconcile(connection, kube).succeeded
    return list(Finding.objects.filter(cluster=connection.cluster, code="pool_unreadable"))


@pytest.mark.parametrize("owner", OWNERS)
def test_strings_where_v2_has_objects(
    kube: RealCluster, kubectl: Callable[..., str], owner: str
) -> None:
    kube.anew("cilium.io_ciliumpodippools.v2-proposal", "cilium.io_ciliumnodes")
    kubectl(*OWNERS[owner], "-f", "-", manifest=manifest("green", A, B, version="v2alpha1"))
    connection = sites.connect(kube)
    (finding,) = _findings(connection, kube)
    assert "has CIDRs as strings, but the v2 of the cluster has objects" in finding.message
    assert kube.object(KIND, "green")["spec"]["ipv4"]["cidrs"] == [A, B], "only said"
    kubectl("replace", "-f", "-", manifest=finding.details["manifest"])
    stored = kube.object(KIND, "green")
    assert stored["spec"]["ipv4"]["cidrs"] == [{"cidr": A}, {"cidr": B}]
    assert _findings(connection, kube) == []


def test_objects_where_v2_has_strings(kube: RealCluster, kubectl: Callable[..., str]) -> None:
    """The CRD of the proposal was replaced by the one that Cilium ships."""
    kube.anew("cilium.io_ciliumpodippools.v2-proposal", "cilium.io_ciliumnodes")
    document = manifest("green", A)
    document["spec"]["ipv4"]["cidrs"] = [{"cidr": A}]
    kubectl("apply", "-f", "-", manifest=document)
    connection = sites.connect(kube)
    assert _findings(connection, kube) == []
    kube.crds("cilium.io_ciliumpodippools.v2")
    (finding,) = _findings(connection, kube)
    assert "has CIDRs as objects" in finding.message
    # The server goes on publishing the old schema, by which kubectl judges, for some seconds.
    mended = finding.details["manifest"]
    kubectl("replace", "--validate=false", "-f", "-", manifest=mended)
    assert kube.object(KIND, "green")["spec"]["ipv4"]["cidrs"] == [A]
    assert _findings(connection, kube) == []


@pytest.mark.parametrize("crd", ["v2", "v2-proposal"])
def test_nothing_is_ever_converted(
    kube: RealCluster, kubectl: Callable[..., str], crd: str
) -> None:
    """Both versions show one object with one uid: the managed resource has nothing to do."""
    kube.anew(f"cilium.io_ciliumpodippools.{crd}", "cilium.io_ciliumnodes")
    kubectl("apply", "-f", "-", manifest=manifest("green", A, version="v2alpha1"))
    views: list[dict[str, Any]] = [
        json.loads(kubectl("get", f"ciliumpodippools.{version}.cilium.io", "green", "-o", "json"))
        for version in ("v2alpha1", "v2")
    ]
    assert len({view["metadata"]["uid"] for view in views}) == 1
    connection = sites.connect(kube, ManagedResource.CONVERSION)
    run = sites.reconcile(connection, kube)
    assert run.kinds["CiliumPodIPPool"]["written"] == 0
    assert kube.object(KIND, "green")["metadata"]["uid"] == views[0]["metadata"]["uid"]


def test_the_command_counts_it(kube: RealCluster, kubectl: Callable[..., str]) -> None:
    kube.anew("cilium.io_ciliumpodippools.v2-proposal", "cilium.io_ciliumnodes")
    kubectl("apply", "-f", "-", manifest=manifest("green", A, version="v2alpha1"))
    connection = sites.connect(kube)
    _findings(connection, kube)
    shown = commands.output("cluster", "show", connection.cluster.name)
    lines = dict(line.split(maxsplit=1) for line in shown.splitlines() if " " in line)
    assert lines["findings"] == "1"
    assert "CiliumPodIPPool cilium.io/v2" in lines["served"]
