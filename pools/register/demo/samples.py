"""Daily samples of the demo fleet's past.

They are computed from the times of allocation and release of the fleet's blocks, so that the charts
agree with all other pages.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

from django.db import connection

from pools.models import Cluster, Pool, Sample, SampleSum
from pools.platform import database
from pools.register import usage
from pools.register.demo import demo
from pools.register.utilization import forecasts, samples
from pools.sql import statements

DAYS = 90


def steps() -> Iterator[demo.DemoStep]:
    """Yield the last steps of the demo fleet, which write its samples."""
    for name in demo.CLUSTERS:
        yield demo.DemoStep(0, name, _write_past_samples)
    yield demo.DemoStep(0, demo.CLUSTERS[-1], _take_todays_sample)


def forget(cluster: Cluster) -> None:
    """Delete the samples of a cluster and subtract it from all sums; its blocks must still exist."""
    _add_tenants(cluster, sign=-1, until=0)
    SampleSum.objects.filter(by__in=_TENANTS, held__lte=0, cooling__lte=0).delete()
    Sample.objects.filter(cluster=cluster.name).delete()
    today = database.now().date()
    SampleSum.objects.filter(by=SampleSum.By.CLUSTER, name=cluster.name).delete()
    first = today - timedelta(days=DAYS)
    SampleSum.objects.filter(by=SampleSum.By.CATEGORY, day__gte=first).delete()
    samples.sum_samples(first, today)


_TENANTS = (SampleSum.By.ORG, SampleSum.By.ENV)


def _write_past_samples(cluster: Cluster) -> None:
    pools = list(Pool.objects.filter(cluster=cluster))
    with connection.cursor() as cursor:
        for pool_id, families in usage.usage_by_pool(pools).items():
            for family, family_usage in families.items():
                numbers = {"capacity": family_usage.capacity, "reserved": family_usage.reserved}
                cursor.execute(
                    _SAMPLES, {"pool": pool_id, "family": family, "days": DAYS, **numbers}
                )
    _add_tenants(cluster, sign=1, until=1)
    today = database.now().date()
    samples.sum_samples(today - timedelta(days=DAYS), today)


def _take_todays_sample(_cluster: Cluster) -> None:
    samples.take_samples()
    forecasts.refresh_forecasts()


def _add_tenants(cluster: Cluster, *, sign: int, until: int) -> None:
    """Add (`sign` 1) or subtract (-1) the blocks in use of the cluster's tenants.

    Covers all days from DAYS ago until `until` days ago.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            _ORGS_AND_ENVS,
            {"cluster": cluster.pk, "days": DAYS, "until": until, "sign": sign},
        )


_SAMPLES = statements.read("pools/demo_samples")
_ORGS_AND_ENVS = statements.read("pools/demo_tenant_sums")
