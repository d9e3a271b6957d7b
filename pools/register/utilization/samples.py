"""Daily samples of the utilization of every pool, and their sums.

Samples are taken repeatedly; the last one of a day stays as the sample of that day. Pages and lists
that would have to count a large register read the newest samples instead and show their age.
"""

import itertools
from collections.abc import Iterable
from datetime import date, datetime, timedelta

from django.db import connection, transaction
from psycopg import sql

from pools.models import Pool, Sample, SampleSum
from pools.platform import advisory_locks, database
from pools.register import usage
from pools.sql import statements

POOLS = 500  # pools counted by one query
TENANTS = 500  # organizations, and environments, with a row of their own

COUNTS = ("capacity", "held", "cooling", "reserved")


def take_samples() -> int:
    """Write today's samples of all pools; return the number of rows of pools."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [advisory_locks.UTILIZATION_SAMPLES])
        now = database.now()
        rows = list(_count_pools(now))
        Sample.objects.bulk_create(
            rows,
            batch_size=POOLS,
            update_conflicts=True,
            unique_fields=["pool_id", "family", "day"],
            update_fields=["cluster", "pool", "category", *COUNTS, "taken_at"],
        )
        day = now.date()
        # Samples of pools that were deleted today.
        Sample.objects.filter(day=day).exclude(taken_at=now).delete()
        sum_samples(day, day)
        _count_tenants(now)
        SampleSum.objects.filter(day=day).exclude(taken_at=now).delete()
    return len(rows)


def delete_old_samples(days: int) -> int:
    """Delete samples older than `days` (0 keeps all); return the number of deleted rows."""
    if not days:
        return 0
    oldest = database.now().date() - timedelta(days=days)
    return sum(model.objects.filter(day__lt=oldest).delete()[0] for model in (Sample, SampleSum))


def to_usage(row: Sample | SampleSum, *, waits: bool = False) -> usage.Usage:
    """Return the counts of a sample as a Usage; `waits` if the cluster has none of the CIDRs yet."""
    pending = int(row.reserved) if waits else 0
    return usage.Usage(int(row.capacity), row.held, row.cooling, int(row.reserved), pending=pending)


def _count_pools(now: datetime) -> Iterable[Sample]:
    pools = Pool.objects.select_related("cluster").order_by("pk").iterator(chunk_size=POOLS)
    while chunk := list(itertools.islice(pools, POOLS)):
        usages = usage.usage_by_pool(chunk)
        for pool in chunk:
            for family, family_usage in usages[pool.pk].items():
                yield Sample(
                    day=now.date(),
                    pool_id=pool.pk,
                    cluster=pool.cluster.name,
                    pool=pool.name,
                    category=pool.category,
                    family=family,
                    capacity=family_usage.capacity,
                    held=family_usage.held,
                    cooling=family_usage.cooling,
                    reserved=family_usage.reserved,
                    taken_at=now,
                )


def sum_samples(first: date, last: date) -> None:
    """Sum the samples of the days `first` to `last` by category and by cluster."""
    with connection.cursor() as cursor:
        for dimension in (SampleSum.By.CATEGORY, SampleSum.By.CLUSTER):
            cursor.execute(
                _SUMS.format(column=sql.Identifier(str(dimension))),
                {"by": dimension, "first": first, "last": last},
            )


_SUMS = sql.SQL("""
INSERT INTO pools_samplesum (day, "by", org, name, rest, family, members, capacity, held, cooling,
                             reserved, taken_at)
SELECT day, %(by)s, '', {column}, false, family, count(*), sum(capacity), sum(held), sum(cooling),
       sum(reserved), max(taken_at)
  FROM pools_sample
 WHERE day BETWEEN %(first)s AND %(last)s
 GROUP BY day, {column}, family
 ORDER BY day, {column}, family
ON CONFLICT ("by", day, org, name, family, rest) DO UPDATE
   SET members = excluded.members, capacity = excluded.capacity, held = excluded.held,
       cooling = excluded.cooling, reserved = excluded.reserved, taken_at = excluded.taken_at
""")


def _count_tenants(now: datetime) -> None:
    """Count blocks in use by organization and by environment, by one statement over all blocks."""
    with connection.cursor() as cursor:
        cursor.execute(_TENANTS, {"now": now, "day": now.date(), "most": TENANTS})


# An ended cooldown does not count, whether or not a worker has cleaned it up (pools.register.usage).
_TENANTS = statements.read("pools/sample_tenants")
