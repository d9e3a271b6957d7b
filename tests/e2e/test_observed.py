"""The address map of a cluster in a browser: from a cell to what uses its addresses."""

import pytest

from pools.core.observed.uses import Role
from pools.models import Cluster
from pools.register.demo import demo
from tests.e2e.conftest import Visit
from tests.observed.rows import observed

pytestmark = pytest.mark.django_db(transaction=True)


def _observe() -> Cluster:
    cluster = Cluster.objects.get(name=demo.FRANKFURT)
    observed(cluster, Role.SERVICES, "10.96.0.0/12", name="kubernetes")
    observed(
        cluster, Role.LOAD_BALANCER, "10.20.240.0/24", name="metal", namespace="metallb-system"
    )
    for number in range(10, 30):
        address = f"192.168.1.{number}/32"
        observed(cluster, Role.NODE, address, name=f"worker-{number}", detail="InternalIP")
    observed(cluster, Role.EGRESS, "192.168.1.100/32", name="egress-prod", detail="on worker-12")
    observed(cluster, Role.SECONDARY, "192.168.1.128/26", name="storage", namespace="shop")
    return cluster


def test_a_cell_of_the_map_leads_to_its_part_and_to_find(visit: Visit) -> None:
    cluster = _observe()
    page = visit.page
    visit.open(f"/admin/pools/cluster/{cluster.pk}/change/#map")
    page.locator('a[aria-label^="10.96."]').first.click()
    page.wait_for_url("**/admin/find/**")
    page.get_by_role("heading", name="Observed CIDRs").wait_for()
    visit.open(f"/admin/pools/cluster/{cluster.pk}/change/?map=192.168.1.0/24#map")
    page.get_by_label("192.168.1.100").first.click()
    page.wait_for_url("**/admin/find/**")
    page.get_by_text("egress-prod").wait_for()
