"""What the demo fleet has besides its pools: daily samples of its past, labels, DNS names.

The samples are computed from the times of allocation and release of the fleet's blocks, so that the charts
agree with all other pages.
"""

from collections.abc import Iterator
from datetime import timedelta

import pgtrigger
from django.db import connection

from pools.models import Block, BlockState, Cluster, DNSName, DNSNameEvent, Pool, Sample, SampleSum
from pools.platform import database
from pools.register import clusters, dns, pools, usage
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


_CLUSTER = {"tags": ["production", "eu-central"], "owner": "platform@example.com"}
# By the names of pools: tags, owner and pattern of the DNS names.
_POOLS = {
    "green-pool": (["production"], "platform@example.com", ""),
    "yellow-pool": (["production", "migrating"], "platform@example.com", ""),
    "public-ipv4": (["production", "internet"], "network@example.com", ""),
    "vm-lab": (["laboratory"], "lab@example.com", "{holder}.lab.example.com"),
}
_NAMES = {"10.99.0.21": "gitlab.example.com", "10.99.0.22": "registry.example.com"}


def label_steps() -> Iterator[demo.DemoStep]:
    yield demo.DemoStep(4, demo.FRANKFURT, _set_attributes)
    yield demo.DemoStep(4, demo.FRANKFURT, _set_names)


def forget_labels(cluster: Cluster) -> None:
    """Delete the DNS names with their events; the rest goes with the pools and the cluster."""
    ids = list(Pool.objects.filter(cluster=cluster).values_list("pk", flat=True))
    DNSName.objects.filter(pool__in=ids).delete()
    with pgtrigger.ignore():
        DNSNameEvent.objects.filter(pool_id__in=ids).delete()


def _set_attributes(cluster: Cluster) -> None:
    clusters.change(cluster, _CLUSTER, author=demo.AUTHOR)
    for name, (tags, owner, pattern) in _POOLS.items():
        pool = Pool.objects.get(cluster=cluster, name=name)
        change = pools.PoolChange(tags=tags, owner=owner, dns_pattern=pattern)
        pools.change(pool.pk, change, author=demo.AUTHOR)


def _set_names(cluster: Cluster) -> None:
    held = Block.objects.filter(pool__cluster=cluster, state=BlockState.HELD)
    for address, name in _NAMES.items():
        dns.set_name(held.get(cidr=f"{address}/32").pk, name, author=demo.AUTHOR)
