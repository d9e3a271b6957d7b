"""The demo fleet's charts: they agree with its blocks, and go with it."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.db.models import Sum

from pools.models import Cluster, Pool, PoolForecast, Sample, SampleSum
from pools.platform import database
from pools.register import usage
from pools.register.demo import demo
from pools.register.demo import samples as demo_samples
from pools.register.utilization import samples as utilization_samples
from tests import factories

pytestmark = pytest.mark.django_db


def rows(model: Any, **of: object) -> set[tuple[Any, ...]]:
    found = model.objects.filter(**of).values_list(
        "day", "family", "held", "cooling", "capacity", "reserved"
    )
    return set(found)


def test_every_pool_has_the_days_until_today_and_today_agrees_with_it() -> None:
    demo.load()
    today = database.now().date()
    days = {today - timedelta(days=ago) for ago in range(demo_samples.DAYS + 1)}
    for pool in Pool.objects.all():
        for family, one in usage.pool_usage(pool).items():
            samples = Sample.objects.filter(pool_id=pool.pk, family=family)
            assert {row.day for row in samples} == days
            now = samples.get(day=today)
            assert utilization_samples.to_usage(now) == one, pool
            yesterday = samples.get(day=today - timedelta(days=1))
            assert yesterday.capacity == one.capacity
            assert yesterday.held + yesterday.cooling >= one.used - 6 - 60 * (pool.name == "vm-lab")


def test_use_grows_and_one_pool_will_be_full_soon() -> None:
    demo.load()
    blue = Pool.objects.get(name="blue-pool")
    held = list(
        Sample.objects.filter(pool_id=blue.pk).order_by("day").values_list("held", flat=True)
    )
    assert held == sorted(held)
    assert (held[0], held[-1]) == (0, 60)
    told = PoolForecast.objects.get(pool=blue)
    assert told.state == "growing"
    assert told.day is not None
    assert told.day <= database.now().date() + timedelta(days=14)
    assert PoolForecast.objects.get(pool__name="premium-ipv4").state == "full"


@pytest.mark.parametrize("by", ["category", "cluster"])
def test_the_sums_of_each_day_are_those_of_its_pools(by: str) -> None:
    demo.load()
    for row in SampleSum.objects.filter(by=by):
        parts = Sample.objects.filter(day=row.day, family=row.family, **{by: row.name})
        summed = parts.aggregate(held=Sum("held"), cooling=Sum("cooling"))
        assert (summed["held"], summed["cooling"]) == (row.held, row.cooling)


def test_organisations_have_what_all_pools_have_together() -> None:
    demo.load()
    for day in SampleSum.objects.values_list("day", flat=True).distinct():
        for name in ("held", "cooling"):
            sums, pools = (
                found.filter(day=day).aggregate(all=Sum(name))["all"] or 0
                for found in (SampleSum.objects.filter(by="org"), Sample.objects.all())
            )
            assert sums == pools, (day, name)


def test_it_goes_with_the_fleet_and_leaves_all_else() -> None:
    own = factories.pool("10.20.0.0/24")
    factories.take(own, org="acme", env="env-01")
    utilization_samples.take_samples()
    before = rows(Sample), rows(SampleSum), rows(SampleSum, by="org", name="acme")
    demo.load()
    assert len(rows(Sample)) > 100
    demo.clear()
    assert not Cluster.objects.filter(name__in=demo.CLUSTERS).exists()
    assert not Sample.objects.exclude(pool_id=own.pk).exists()
    assert (rows(Sample), rows(SampleSum), rows(SampleSum, by="org", name="acme")) == before
