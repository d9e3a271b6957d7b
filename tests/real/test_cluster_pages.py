"""A cluster's page says in a browser what the cluster serves, and what is gone."""

import pytest

from tests.claims.networks.ovn import cudn
from tests.e2e.conftest import Visit
from tests.kube.real import RealCluster
from tests.real import sites

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.mark.parametrize("visit", [1440, 390], indirect=True)
def test_what_is_served_and_what_is_gone(visit: Visit, kube: RealCluster) -> None:
    kube.anew(*sites.OVN, *sites.KUBEVIRT)
    kube.put(cudn("prod", "10.128.0.0/16"))
    connection = sites.connect(kube)
    sites.reconcile(connection, kube)
    path = f"/admin/pools/cluster/{connection.cluster_id}/change/"
    visit.open(path)
    content = visit.page.locator("#content")
    assert "healthy" in content.inner_text()
    line = visit.page.locator(".cad-serves").inner_text()
    assert "ClusterUserDefinedNetwork v1" in line
    assert "pod pools" in line.partition("Not served, so not shown: ")[2]
    assert "does not serve" not in content.inner_text()
    assert not visit.scrolls_sideways()

    kube.undefine("clusteruserdefinednetworks.k8s.ovn.org")
    sites.reconcile(connection, kube)
    visit.open(path)
    assert "no longer serves ClusterUserDefinedNetwork" in content.inner_text()
    assert "nothing is released" in content.inner_text()
