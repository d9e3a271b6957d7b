"""Two installations that manage the pools of one cluster write nothing again and again."""

from collections.abc import Callable

import pytest

from pools.models import Drift, ManagedResource
from pools.register import pools
from tests import factories
from tests.handlers.fleet import Fleet, manifest
from tests.kube.real import RealCluster
from tests.real.owned_pools import KIND, A, B, C

pytestmark = pytest.mark.django_db


def test_a_pool_that_another_register_changes_is_not_changed_back(
    kube: RealCluster, kubectl: Callable[..., str]
) -> None:
    kube.anew("cilium.io_ciliumpodippools.v2", "cilium.io_ciliumnodes")
    fleet = Fleet(kube)
    fleet.manage(ManagedResource.POOLS)
    pool = fleet.make("green", A)
    assert fleet.counted()["written"] == 1

    other = ("apply", "--server-side", "--field-manager=cadastre", "-f", "-")
    kubectl(*other, manifest=manifest("green", A, B))
    version = kube.object(KIND, "green")["metadata"]["resourceVersion"]
    for _ in range(3):
        assert fleet.counted()["written"] == 0
    assert kube.object(KIND, "green")["metadata"]["resourceVersion"] == version
    assert Drift.objects.get().conflict_code == "written_elsewhere"

    # What somebody changes here is written.
    pools.add_cidr(pool.pk, factories.entry(B), author=factories.BY)
    pools.add_cidr(pool.pk, factories.entry(C), author=factories.BY)
    assert fleet.counted()["written"] == 1
    assert kube.object(KIND, "green")["spec"]["ipv4"]["cidrs"] == [A, B, C]
    assert not Drift.objects.exists()
