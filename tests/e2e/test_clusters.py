"""The pages of clusters in a browser: they fit, nothing complains; a cluster is connected by hand."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from pools.models import Connection
from tests import factories
from tests.e2e import fleet
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
    "/admin/pools/syncrun/",
    "/admin/nodes/",
)


@pytest.fixture
def ids(visit: Visit) -> dict[str, int]:
    """Ids by the names of PATHS."""
    return fleet.observed()


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_every_page_fits_and_nothing_complains(visit: Visit, ids: dict[str, int]) -> None:
    for path in PATHS:
        visit.open(path.format(**ids))
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
    assert visit.complaints == []
