"""An administrator takes a field over in a browser; the pages say before who keeps it, and after nothing."""

from collections.abc import Callable
from typing import Any

import pytest

from pools.models.clusters import ManagedResource
from pools.register import pools
from tests import factories
from tests.e2e.conftest import Visit
from tests.kube.real import RealCluster
from tests.real import sites
from tests.real.owned_pools import A, B, Owned
from tests.real.test_takeovers import WHY

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture(params=[("kubectl-client-side", "v2alpha1"), ("helm-apply", "v2")])
def owned(
    kube: RealCluster, kubectl: Callable[..., str], request: pytest.FixtureRequest, settings: Any
) -> Owned:
    """A pool whose CIDR A was removed here; its owner's object still has it."""
    kube.anew("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
    owned = Owned(kube, kubectl, *request.param)
    sites.reach(owned.connection, kube.kubeconfig())
    owned.manage(ManagedResource.POOLS)
    owned.apply("green", A, B)
    owned.passed()
    pools.remove_cidr(owned.cidr(A).pk, author=factories.BY)
    owned.passed()
    return owned


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_a_field_is_taken_over(visit: Visit, owned: Owned) -> None:
    page = visit.page
    visit.open(f"/admin/pools/pool/{owned.pool('green').pk}/change/")
    assert owned.manager in page.locator("#content").inner_text()
    visit.open(f"/admin/pools/drift/?cluster__id__exact={owned.cluster.pk}")
    page.get_by_role("link", name="green").first.click()
    page.wait_for_load_state("networkidle")
    assert page.get_by_role("button", name="Apply").count() == 0  # it would write nothing
    page.get_by_role("link", name="Take over", exact=True).click()
    page.wait_for_url("**/take-over/**")
    preview = page.locator("#content").inner_text()
    assert all(text in preview for text in ("spec.ipv4.cidrs", owned.manager, A, B))
    assert not visit.scrolls_sideways()
    page.get_by_role("button", name="Take over").click()
    assert page.locator(".cad-error, .errorlist").first.inner_text()  # the reason is missing
    assert owned.stored()["spec"]["ipv4"]["cidrs"] == [A, B]
    page.fill("[name=reason]", WHY)
    page.get_by_role("button", name="Take over").click()
    page.wait_for_url("**/admin/pools/drift/")
    assert "spec.ipv4.cidrs of" in page.locator("body").inner_text()
    assert owned.stored()["spec"]["ipv4"]["cidrs"] == [B]
    owned.passed()
    visit.open(f"/admin/pools/pool/{owned.pool('green').pk}/change/")
    assert owned.manager not in page.locator("#content").inner_text()
