"""Daily samples of the demo fleet: as if the worker had taken them ever since.

They are counted from the fleet's blocks, which know when they were allocated and released, so that the
charts agree with all other pages.
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

DAYS = 90


def steps() -> Iterator[demo.DemoStep]:
    """When all else has happened."""
    for name in demo.CLUSTERS:
        yield demo.DemoStep(0, name, _past)
    yield demo.DemoStep(0, demo.CLUSTERS[-1], _today)


def forget(cluster: Cluster) -> None:
    """The samples of a cluster, and its part of all sums; its blocks must still be there."""
    _add_tenants(cluster, sign=-1, until=0)
    SampleSum.objects.filter(by__in=_TENANTS, held__lte=0, cooling__lte=0).delete()
    Sample.objects.filter(cluster=cluster.name).delete()
    today = database.now().date()
    SampleSum.objects.filter(by=SampleSum.By.CLUSTER, name=cluster.name).delete()
    first = today - timedelta(days=DAYS)
    SampleSum.objects.filter(by=SampleSum.By.CATEGORY, day__gte=first).delete()
    samples.add_up(first, today)


_TENANTS = (SampleSum.By.ORG, SampleSum.By.ENV)


def _past(cluster: Cluster) -> None:
    pools = list(Pool.objects.filter(cluster=cluster))
    with connection.cursor() as cursor:
        for pool_id, families in usage.of_pools(pools).items():
            for family, family_usage in families.items():
                numbers = {"capacity": family_usage.capacity, "reserved": family_usage.reserved}
                cursor.execute(
                    _SAMPLES, {"pool": pool_id, "family": family, "days": DAYS, **numbers}
                )
    _add_tenants(cluster, sign=1, until=1)
    today = database.now().date()
    samples.add_up(today - timedelta(days=DAYS), today)


def _today(_cluster: Cluster) -> None:
    samples.take()
    forecasts.work_out()


def _add_tenants(cluster: Cluster, *, sign: int, until: int) -> None:
    """Add (1) or take away (-1) what its tenants had in use, on all days until so many days ago."""
    with connection.cursor() as cursor:
        cursor.execute(
            _ORGS_AND_ENVS,
            {"cluster": cluster.pk, "days": DAYS, "until": until, "sign": sign},
        )


# The days, with their ends: of today, now.
_CALENDAR = """
  SELECT on_day::date AS day, least(on_day + interval '1 day', ipam_now()) AS ends
    FROM generate_series(date_trunc('day', ipam_now(), 'UTC') - make_interval(days => %(days)s),
                         date_trunc('day', ipam_now(), 'UTC') - make_interval(days => {until}),
                         interval '1 day') AS on_day
"""
_HELD = "b.allocated_at < d.ends AND (b.state = 'held' OR b.released_at >= d.ends)"
_COOLING = "b.state = 'cooling' AND b.released_at < d.ends"
_SAMPLES = f"""
INSERT INTO pools_sample (day, pool_id, cluster, pool, category, family, capacity, held, cooling,
                          reserved, taken_at)
SELECT d.day, p.id, c.name, p.name, p.category, %(family)s, %(capacity)s,
       count(b) FILTER (WHERE {_HELD}), count(b) FILTER (WHERE {_COOLING}), %(reserved)s,
       d.ends - interval '1 minute'
  FROM ({_CALENDAR.format(until=1)}) AS d
 CROSS JOIN pools_pool AS p
  JOIN pools_cluster AS c ON c.id = p.cluster_id
  LEFT JOIN pools_block AS b ON b.pool_id = p.id AND b.family = %(family)s
 WHERE p.id = %(pool)s
 GROUP BY d.day, d.ends, p.id, c.name
    ON CONFLICT DO NOTHING
"""  # noqa: S608  # our own words
_ORGS_AND_ENVS = f"""
INSERT INTO pools_samplesum AS s (day, "by", org, name, rest, family, members, capacity, held,
                                  cooling, reserved, taken_at)
SELECT d.day, t."by", t.org, t.name, false, b.family, 1, 0,
       %(sign)s * count(b) FILTER (WHERE {_HELD}), %(sign)s * count(b) FILTER (WHERE {_COOLING}), 0,
       d.ends - interval '1 minute'
  FROM ({_CALENDAR.format(until="%(until)s")}) AS d
 CROSS JOIN pools_block AS b
  JOIN pools_pool AS p ON p.id = b.pool_id AND p.cluster_id = %(cluster)s
 CROSS JOIN LATERAL (VALUES ('org', '', b.org), ('env', b.org, b.env)) AS t("by", org, name)
 WHERE (t."by" = 'org' OR t.name <> '') AND b.allocated_at < d.ends
 GROUP BY d.day, d.ends, t."by", t.org, t.name, b.family
HAVING count(b) FILTER (WHERE {_HELD} OR {_COOLING}) > 0
    ON CONFLICT ("by", day, org, name, family, rest)
    DO UPDATE SET held = s.held + excluded.held, cooling = s.cooling + excluded.cooling
"""  # noqa: S608
