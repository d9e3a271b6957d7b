"""The demo fleet's charts agree with its blocks."""

from dataclasses import replace
from datetime import timedelta

import pytest

from pools.models import Pool, PoolForecast, Sample
from pools.platform import database
from pools.register import usage
from pools.register.demo import samples as demo_samples
from pools.register.utilization import samples as utilization_samples

pytestmark = [pytest.mark.usefixtures("demo_fleet"), pytest.mark.django_db]


@pytest.mark.exhaustive
def test_every_pool_has_the_days_until_today_and_today_agrees_with_it() -> None:
    today = database.now().date()
    days = {today - timedelta(days=ago) for ago in range(demo_samples.DAYS + 1)}
    for pool in Pool.objects.all():
        for family, family_usage in usage.pool_usage(pool).items():
            samples = Sample.objects.filter(pool_id=pool.pk, family=family)
            assert {row.day for row in samples} == days
            now = samples.get(day=today)
            # What waits for the cluster is capacity of a sample like any other.
            assert utilization_samples.to_usage(now) == replace(family_usage, pending=0), pool
            yesterday = samples.get(day=today - timedelta(days=1))
            assert yesterday.capacity == family_usage.capacity
            assert yesterday.held + yesterday.cooling >= family_usage.used - 6 - 60 * (
                pool.name == "vm-lab"
            )


@pytest.mark.exhaustive
def test_use_grows_and_one_pool_will_be_full_soon() -> None:
    blue = Pool.objects.get(name="blue-pool")
    held = list(
        Sample.objects.filter(pool_id=blue.pk).order_by("day").values_list("held", flat=True)
    )
    assert held == sorted(held)
    assert (held[0], held[-1]) == (0, 60)
    pool_forecast = PoolForecast.objects.get(pool=blue)
    assert pool_forecast.state == "growing"
    assert pool_forecast.day is not None
    assert pool_forecast.day <= database.now().date() + timedelta(days=14)
    assert PoolForecast.objects.get(pool__name="premium-ipv4").state == "full"
