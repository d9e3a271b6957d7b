"""The maps of a cluster and of a pool: a prefix is no use, and a pattern means one thing."""

from ipaddress import ip_network
from typing import Any

import pytest

from pools.core.observed.uses import Role
from pools.models import Cluster
from tests import factories
from tests.e2e.conftest import Visit
from tests.observed.rows import observed

pytestmark = pytest.mark.django_db(transaction=True)


def _fill(page: Any, style: str) -> str:
    return str(
        page.locator(f".cad-legend .{style}").first.evaluate("e => getComputedStyle(e).fill")
    )


def _counts(page: Any) -> list[str]:
    return [" ".join(text.split()) for text in page.locator(".cad-legend li").all_inner_texts()]


def test_the_map_of_an_empty_cluster_is_empty(visit: Visit) -> None:
    prefix = ip_network("2001:db8:77::/48")
    empty = factories.cluster()
    Cluster.objects.filter(pk=empty.pk).update(cluster_prefix=prefix)
    visit.open(f"/admin/pools/cluster/{empty.pk}/change/#map")
    assert _counts(visit.page) == ["not used 256 cells"]
    assert visit.page.locator(".cad-map .m-use-pool").count() == 0
    divided = factories.cluster(cluster_prefix=ip_network("2001:db8:78::/48"))
    assert divided.pools.count() == 2
    visit.open(f"/admin/pools/cluster/{divided.pk}/change/#map")
    assert _counts(visit.page) == ["pools 1 cell", "not used 255 cells"]


def test_each_meaning_has_its_pattern(visit: Visit) -> None:
    cluster = factories.cluster()
    observed(cluster, Role.SERVICES, "10.96.0.0/16", name="kubernetes")
    observed(cluster, Role.LOAD_BALANCER, "10.97.0.0/16", name="metal")
    visit.open(f"/admin/pools/cluster/{cluster.pk}/change/#map")
    services, balancers = _fill(visit.page, "m-use-services"), _fill(visit.page, "m-use-external")
    pool = factories.pool("10.1.0.0/29", reserved=("10.1.0.1-10.1.0.2",))
    visit.open(f"/admin/pools/pool/{pool.pk}/change/#map")
    cooling, reserved = _fill(visit.page, "m-cooling"), _fill(visit.page, "m-reserved")
    assert len({services, balancers, cooling, reserved}) == 4
    assert "not allocated: 2 network and broadcast addresses" in _counts(visit.page)
