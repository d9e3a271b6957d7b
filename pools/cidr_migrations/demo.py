"""The migration of the demo fleet: a CIDR is reserved and drains, its replacement serves new nodes."""

from collections.abc import Iterator
from dataclasses import replace

from pools.cidr_migrations import migrations
from pools.core import addresses
from pools.models import CIDRMigration, Cluster, Pool
from pools.register.demo import demo

_POOL, _OLD, _NEW = "yellow-pool", "10.50.0.0/20", "10.50.16.0/20"
_AUTHOR = replace(demo.AUTHOR, reason="The old rack is switched off")


def steps() -> Iterator[demo.DemoStep]:
    """Yield the steps with their age in days."""
    yield demo.DemoStep(2.9, demo.FRANKFURT, _start)


def forget(cluster: Cluster) -> None:
    """Delete the migrations of a cluster."""
    CIDRMigration.objects.filter(pool__cluster=cluster).delete()


def _start(cluster: Cluster) -> None:
    pool = Pool.objects.get(cluster=cluster, name=_POOL)
    plan = migrations.plan_migration(
        pool, addresses.parse_cidr(_OLD), to=addresses.parse_cidr(_NEW)
    )
    migrations.start_migration(plan, author=_AUTHOR)
