"""The pages of clusters in a browser: one is connected by hand; where its pools, nodes and blocks are."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from pools.models import Block, Connection
from pools.register.demo import demo
from tests import factories
from tests.e2e import fleet
from tests.e2e.conftest import Visit
from tests.e2e.test_jobs import Clicks
from tests.kube.fake import FakeCluster

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def ids(visit: Visit) -> dict[str, int]:
    return fleet.observed()


@pytest.fixture
def fake(settings: Any) -> Iterator[FakeCluster]:
    settings.IPAM_ALLOW_LOOPBACK_CLUSTERS = True
    with FakeCluster() as running:
        running.crds("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
        yield running


def test_a_cluster_is_connected_by_hand(visit: Visit, fake: FakeCluster) -> None:
    config = yaml.safe_load(fake.kubeconfig())
    config["contexts"].append({"name": "second", "context": {"cluster": "test", "user": "test"}})
    cluster = factories.cluster()
    page = visit.page
    visit.open(f"/admin/pools/cluster/{cluster.pk}/change/")
    page.get_by_role("link", name="Connect", exact=True).click()
    page.fill("[name=text]", yaml.safe_dump(config))
    page.get_by_role("button", name="Test connection").click()
    page.select_option("[name=context]", "second")
    assert fake.token not in page.content()
    page.get_by_role("button", name="Test connection").click()
    page.get_by_text("Connection test succeeded").wait_for()
    page.get_by_role("button", name="Connect", exact=True).click()
    page.wait_for_url("**/change/#connection")
    assert "never synced" in page.locator("#connection").inner_text()
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("button", name="Resume").wait_for()
    assert Connection.objects.get(cluster=cluster).paused


def test_from_the_first_step_to_a_connected_cluster(visit: Visit, fake: FakeCluster) -> None:
    page = visit.page
    demo.clear()
    visit.open("/admin/")
    page.get_by_role("link", name="Connect a cluster").click()
    page.fill("[name=name]", "prod")
    page.get_by_role("button", name="Add and connect").click()
    page.locator(".cad-copy-button").first.wait_for()  # the commands are there to be copied
    page.fill("[name=server]", fake.url)
    page.fill("[name=ca]", fake.ca)
    page.fill("[name=token]", "stranger")
    page.get_by_role("button", name="Connect", exact=True).click()
    page.get_by_text("does not accept the credentials (401)").first.wait_for()
    page.fill("[name=token]", fake.token)
    page.get_by_role("button", name="Connect", exact=True).click()
    page.wait_for_url("**/change/#connection")
    visit.open("/admin/")
    assert "done" in page.locator(".cad-first-steps > li").first.inner_text()
    page.get_by_role("button", name="Drift").click()
    page.wait_for_url("**/pools/drift/")
    visit.open("/admin/")
    page.get_by_role("button", name="Dismiss").click()
    page.wait_for_url("**/admin/")
    assert not page.locator(".cad-first-steps").count()


def test_a_cluster_is_added_and_connected_in_five_clicks(visit: Visit, fake: FakeCluster) -> None:
    clicks = Clicks(visit)
    page = clicks.page
    clicks.open_from_menu("Clusters")
    clicks.add("cluster")
    page.fill("[name=name]", "prod")
    clicks.click("button", "Add and connect")
    page.fill("[name=server]", fake.url)
    page.fill("[name=ca]", fake.ca)
    page.fill("[name=token]", fake.token)
    clicks.click("button", "Connect")
    page.wait_for_url("**/change/#connection")
    assert Connection.objects.filter(cluster__name="prod").exists()
    assert clicks.number <= 5


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_where_a_pool_is(visit: Visit, ids: dict[str, int]) -> None:
    page = visit.page
    visit.open(f"/admin/pools/cluster/{ids['cluster']}/change/")
    page.locator(".cad-object-head summary").click()
    page.get_by_role("link", name="Where is this?").click()
    page.locator("#list a").first.wait_for()
    assert not visit.scrolls_sideways()
    links = page.locator("#list a")
    assert links.count() == page.locator("svg.cad-topology a").count()
    links.nth(1).click()
    page.wait_for_url("**/pools/pool/*/change/**")


def test_where_a_node_and_a_block_are(visit: Visit, ids: dict[str, int]) -> None:
    page = visit.page
    node = Block.objects.filter(holder_kind="node", state="held").first()
    assert node is not None
    visit.open(f"/admin/pools/cluster/{node.pool.cluster_id}/topology/?node={node.holder_id}")
    here = page.locator("svg.cad-topology #here")
    assert here.get_attribute("aria-label").startswith(f"node {node.holder_id}")
    visit.open(f"/admin/pools/block/{node.pk}/change/")
    page.locator(".cad-object-head summary").click()
    page.get_by_role("link", name="Where is this?").click()
    here.wait_for()
    assert page.locator("svg.cad-topology a.t-path").count() == 4
    here.focus()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/pools/block/{node.pk}/change/")
