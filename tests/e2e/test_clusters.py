"""The pages of clusters in a browser: they fit, nothing complains; a cluster is connected by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pools.models import Cluster, Connection, Drift, Finding, ObservedObject, Run
from pools.models.fields import Now
from pools.services import demo
from tests.kube.fake import FakeCluster

if TYPE_CHECKING:
    from tests.e2e.conftest import Visit

pytestmark = pytest.mark.django_db(transaction=True)
PATHS = (
    "/admin/",
    "/admin/pools/cluster/",
    "/admin/pools/cluster/{cluster}/change/",
    "/admin/pools/cluster/{cluster}/connect/",
    "/admin/pools/cluster/{cluster}/terms/",
    "/admin/pools/cluster/{cluster}/disconnect/",
    "/admin/pools/drift/",
    "/admin/pools/drift/{drift}/change/",
    "/admin/pools/drift/settle/?verb=ignore&id={drift}",
    "/admin/pools/observedobject/",
    "/admin/pools/observedobject/{object}/change/",
    "/admin/pools/finding/",
    "/admin/pools/run/",
    "/admin/nodes/",
)
NODE = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumNode",
    "metadata": {"name": "worker-1", "uid": "u-1"},
    "spec": {
        "ipam": {
            "pools": {
                "requested": [{"pool": "green-pool", "needed": {"ipv4-addrs": 300}}],
                "allocated": [{"pool": "green-pool", "cidrs": ["10.20.1.0/24", "10.99.0.0/24"]}],
            }
        }
    },
}


@pytest.fixture
def seen(visit: Visit) -> dict[str, int]:
    """A cluster of the demo fleet with a little of everything; ids by the names of PATHS."""
    cluster = Cluster.objects.get(name=demo.FRANKFURT)
    Connection.objects.create(
        cluster=cluster, server="https://api.frankfurt.example:6443", mode="managed", sealed="",
        duties=["pools", "pod-cidrs"], version="v1.33.2", identity="0f6b7c1e-1f0c-4d1c-9f2e",
        due_at=Now(), succeeded_at="2026-01-01T00:00:00Z", failures=4,
        error_code="cluster_unreachable", error="the connection was refused",
    )  # fmt: skip
    rows = [
        Drift.objects.create(
            cluster=cluster, kind="CiliumPodIPPool", name="green-pool", path=path, desired=desired,
            observed=observed, managers=["kubectl-client-side-apply"], since=Now(),
            conflict="the field belongs to kubectl" if path.endswith("Size") else "",
        )
        for path, desired, observed in (
            ("spec.ipv4.cidrs", ["10.20.0.0/16", "10.30.0.0/16"], ["10.20.0.0/16"]),
            ("spec.ipv4.maskSize", 24, 25),
        )
    ]  # fmt: skip
    for name, problem in (("worker-1", ""), ("worker-2", "spec.ipam.pools: a list is expected")):
        row = ObservedObject.objects.create(
            cluster=cluster, kind="CiliumNode", api_version="cilium.io/v2", name=name, uid=name,
            resource_version="77", manifest=NODE, problem_code=problem and "wrong_type",
            problem=problem, first_seen_at=Now(), changed_at=Now(),
        )  # fmt: skip
    Finding.objects.create(
        cluster=cluster, kind="CiliumNode", code="overlap", subject="worker-1 10.20.1.0/24",
        severity="error", message="10.20.1.0/24 is also held by node worker-7.", since=Now(),
    )  # fmt: skip
    counts = {"seen": 120, "changed": 3, "written": 1, "failed": 0}
    for succeeded in (True, False):
        Run.objects.create(
            cluster=cluster, trigger="schedule", started_at=Now(), ended_at=Now(),
            succeeded=succeeded, kinds={"CiliumNode": counts, "CiliumPodIPPool": counts},
            error_code="" if succeeded else "cluster_unreachable",
            error="" if succeeded else "the connection was refused",
        )  # fmt: skip
    return {"cluster": cluster.pk, "drift": rows[0].pk, "object": row.pk}


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_every_page_fits_and_nothing_complains(visit: Visit, seen: dict[str, int]) -> None:
    for path in PATHS:
        visit.open(path.format(**seen))
        assert visit.complaints == [], path
        assert not visit.scrolls_sideways(), path


@pytest.fixture
def fake(settings: Any) -> Iterator[FakeCluster]:
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
        yield running


def test_a_cluster_is_connected_by_hand(visit: Visit, fake: FakeCluster) -> None:
    config = yaml.safe_load(fake.kubeconfig())
    config["contexts"].append({"name": "second", "context": {"cluster": "test", "user": "test"}})
    cluster = Cluster.objects.get(name=demo.BERLIN)
    page = visit.page
    visit.open(f"/admin/pools/cluster/{cluster.pk}/change/")
    page.get_by_role("link", name="Connect", exact=True).click()
    page.fill("[name=text]", yaml.safe_dump(config))
    page.get_by_role("button", name="Test first").click()
    page.select_option("[name=context]", "second")
    assert fake.token not in page.content()
    page.get_by_role("button", name="Test first").click()
    page.get_by_text("would succeed").wait_for()
    page.get_by_role("button", name="Connect", exact=True).click()
    page.wait_for_url("**/change/")
    assert "never synced" in page.locator("#connection").inner_text()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").wait_for()
    assert Connection.objects.get(cluster=cluster).paused
    assert visit.complaints == []
