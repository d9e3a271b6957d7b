"""A pool that the cluster does not have yet is not full; what was adopted differs no more."""

import pytest

from pools.admin.overview import overview
from pools.admin.pools import page
from pools.core.forecast import ForecastState
from pools.models import Finding, ManagedResource, Pool, PoolForecast
from pools.register import usage
from pools.register.utilization import forecasts, samples
from tests import factories
from tests.handlers import fleet as fleets
from tests.handlers.conftest import OLD
from tests.handlers.fleet import Fleet
from tests.handlers.node_world import World
from tests.kube.fake import FakeCluster
from tests.pools.conftest import Clock


@pytest.mark.parametrize("definition", [OLD], indirect=True)
def test_a_pool_that_the_cluster_does_not_have_yet_is_not_full(fleet: Fleet) -> None:
    fleet.put(fleets.manifest("other", "10.60.0.0/16", version="v2alpha1"))
    fleet.manage(ManagedResource.POOLS)
    fleet.passed()
    pool = fleet.make("green", "10.61.0.0/16", reserved=["10.61.0.0-10.61.0.255"])
    fleet.put(fleets.manifest("green", "10.62.0.0/16", version="v2alpha1"))
    fleet.passed()
    fleet.passed()
    assert ("cidr_addition_pending", "green 10.61.0.0/16") in fleet.findings()
    counts = usage.pool_usage(Pool.objects.get(pk=pool.pk))[4]
    assert (counts.free, counts.used) == (0, 0)
    assert counts.waits_for_cluster
    assert (counts.ratio, counts.percent) == (0.0, 0)
    assert page.pool_state({4: counts}, draining=False) == "pending"
    samples.take_samples()
    forecasts.refresh_forecasts()
    assert PoolForecast.objects.get(pool=pool, family=4).state != ForecastState.FULL
    summary = {measured.pool.name: measured for measured in overview.summarize().pools}
    assert (summary["green"].state, summary["green"].percent) == ("pending", 0)


def test_a_pool_that_is_used_up_is_full_still(db: None) -> None:
    pool = factories.pool("10.0.0.0/31")
    factories.drain(pool)
    counts = usage.pool_usage(pool)[4]
    assert (counts.ratio, counts.percent) == (1.0, 100)
    assert page.pool_state({4: counts}, draining=False) == "full"


@pytest.mark.exhaustive
@pytest.mark.parametrize("serving", [True, False])
def test_the_advice_on_cooldowns(fake: FakeCluster, clock: Clock, serving: bool) -> None:
    world = World(fake, managed_resource=serving)
    world.pool("a", "10.0.0.0/24", cooldown=600)
    world.node("n1", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    world.node("n1")
    world.passed()
    clock.advance(10)
    world.node("n2", lists={"a": ["10.0.0.0/24"]})
    world.passed()
    message = Finding.objects.get(code="cooldown_not_kept").message
    assert ("another controller" in message) == serving
    assert ("if it writes pod-cidrs" in message) != serving
