"""A scrape of /metrics over a large register, against one plain count of its blocks by pool and state."""

import json
from collections.abc import Iterator
from ipaddress import ip_network

from django.db import connection

from benchmarks import clients, registers
from ipam_site.http import metrics
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import Category, Connection, Measure, Now
from pools.register import pools

CLUSTERS, POOLS = 100, 10  # of each cluster
_SCRAPES = 7
_FLOOR = """
    SELECT pool_id, family, state, withheld, count(*) FROM pools_block
    WHERE state IN ('held', 'cooling') GROUP BY 1, 2, 3, 4
"""


def measure(rows: int) -> Iterator[tuple[str, float, float, float]]:
    """(name, ms, floor's ms, goal at most)."""
    build(rows)
    metrics.render()  # counts the events of building it
    cost, floor = [], []
    for _ in range(_SCRAPES):  # in turn, so that both see the same machine
        floor.append(clients.median_ms(1, lambda _: _count()))
        cost.append(clients.median_ms(1, lambda _: metrics.render()))
    yield f"metrics_{rows}", sorted(cost)[_SCRAPES // 2], sorted(floor)[_SCRAPES // 2], 6


def build(rows: int) -> None:
    """A hundred connected clusters with a thousand pools, which hold so many blocks together."""
    each = rows // (CLUSTERS * POOLS)
    for _ in range(CLUSTERS):
        cluster = registers.cluster()
        Connection.objects.create(
            cluster=cluster, server="https://10.0.0.1:6443", sealed="", due_at=Now(), paused=True
        )
        for number in range(POOLS):
            network = ip_network(f"10.{number}.0.0/16")
            family = Family((CidrEntry(network, ()),), 32)
            pool = pools.create(
                cluster=cluster,
                name=f"pool-{number}",
                category=Category.INSTANCE,
                families={4: family},
                author=registers.BY,
            )
            registers.fill(pool, each)
        Measure.objects.bulk_create(
            Measure(
                name="ipam_k8s_requests_total",
                labels=json.dumps({"cluster": cluster.name, "code": code, "verb": verb}),
                value=1,
            )
            for verb in ("list", "watch", "get", "apply")
            for code in ("200", "403", "409", "none")
        )
    registers.analyze()


def _count() -> None:
    with connection.cursor() as cursor:
        cursor.execute(_FLOOR)
        cursor.fetchall()
