"""The demo fleet: two clusters with example data for every page.

The services create it as if it had been in use for months: the register's clock is moved back
(pools/sql/clock.sql) and advances with each step. `clear` deletes all of it, including its events.
"""

import contextlib
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network

import pgtrigger
from django.db import connection, transaction

from pools import models
from pools.core import addresses, errors
from pools.core.cilium.podippool import CidrEntry, Family
from pools.platform import events
from pools.register import clusters, environments, journal, manifests, pools
from pools.register.allocator import allocation, requests
from pools.register.leaks import references
from pools.register.plan import containers

FRANKFURT, BERLIN = "demo-frankfurt", "demo-berlin"
CLUSTERS = (FRANKFURT, BERLIN)
PREFIXES = {FRANKFURT: IPv6Network("2001:db8:10::/48"), BERLIN: IPv6Network("2001:db8:20::/56")}
AUTHOR = events.Author(actor="demo", source="command")

_DRAINED = ("10.50.0.0/20", "10.50.0.0/20", "moves to 10.50.16.0/20")

# The shape that CFP-42466 proposes.
GREEN_POOL_V2 = b"""\
apiVersion: cilium.io/v2
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - cidr: 10.20.0.0/16
        reservedRange: 10.20.0.0-10.20.0.99
      - cidr: 10.30.0.0/16
    maskSize: 24
"""
# The shape of Cilium's documentation of multi-pool.
GREEN_POOL_V2ALPHA1 = b"""\
apiVersion: cilium.io/v2alpha1
kind: CiliumPodIPPool
metadata:
  name: green-pool
spec:
  ipv4:
    cidrs:
      - 10.20.0.0/16
      - 10.30.0.0/16
    maskSize: 24
  ipv6:
    cidrs:
      - fd00::/104
    maskSize: 120
"""


@dataclass(frozen=True)
class DemoStep:
    """A change in a demo cluster, `days_ago` before now."""

    days_ago: float
    cluster: str
    work: Callable[[models.Cluster], object]


@dataclass(frozen=True)
class DemoPart:
    """The steps that another app adds to the demo fleet, and the function that deletes their rows."""

    steps: Callable[[], Iterable[DemoStep]]
    forget: Callable[[models.Cluster], None] = lambda _cluster: None  # its rows go with the cluster


PARTS: list[DemoPart] = []  # filled by pools.extension


def load() -> bool:
    """Create the demo fleet; return False if a cluster of one of its names exists already."""
    with events.recorded_by(AUTHOR):
        if models.Cluster.objects.filter(name__in=CLUSTERS).exists():
            return False
        # In the order of time, so that the numbers of the events are in that order too.
        further = (step for part in PARTS for step in part.steps())
        with _clock_moved_back(91):
            load_containers(author=AUTHOR)
        steps = [*_frankfurt(), *_berlin(), *further]
        for step in sorted(steps, key=lambda step: -step.days_ago):
            with _clock_moved_back(step.days_ago):
                cluster = models.Cluster.objects.filter(
                    name=step.cluster
                ).first() or clusters.create(
                    step.cluster,
                    author=AUTHOR,
                    cluster_prefix=PREFIXES[step.cluster],
                    description="Demo fleet. `manage.py demo --clear` removes it.",
                )
                step.work(cluster)
    return True


def clear() -> int:
    """Delete the demo fleet with all its blocks and events; return the number of clusters."""
    with transaction.atomic(), connection.cursor() as cursor:
        demo_clusters = list(models.Cluster.objects.filter(name__in=CLUSTERS))
        cursor.execute("SELECT set_config('ipam.forget', 'on', true)")
        for cluster in demo_clusters:
            for part in PARTS:
                part.forget(cluster)
            _delete_cluster(cluster)
        if demo_clusters:
            forget_containers()
        cursor.execute("SELECT set_config('ipam.forget', '', true)")
    return len(demo_clusters)


# --- the fleet ------------------------------------------------------------------------------------


def _frankfurt() -> Iterator[DemoStep]:
    nodes = [f"fra-node-{number:03}" for number in range(1, 49)]
    gpus = [f"fra-gpu-{number:03}" for number in range(1, 61)]
    machines = [f"lab-vm-{number:03}" for number in range(1, 118)]
    shops = [f"shop-{number:02}" for number in range(1, 32)]
    banks = [f"bank-{number}" for number in range(1, 9)]
    yield DemoStep(90, FRANKFURT, _frankfurt_pools)
    for pool in ("nodes", "green-pool"):
        yield from _allocation_steps(FRANKFURT, pool, "node", nodes[:36], days_ago=89)
        yield from _allocation_steps(FRANKFURT, pool, "node", nodes[36:], days_ago=50, pause=30)
    yield from _allocation_steps(FRANKFURT, "yellow-pool", "node", nodes[:9], days_ago=88)
    yield from _allocation_steps(FRANKFURT, "blue-pool", "node", gpus, days_ago=80, pause=8)
    yield from _allocation_steps(FRANKFURT, "vm-lab", "vm", machines, days_ago=85, pause=4.2)
    for tenant in range(1, 9):
        yield _instances_step(FRANKFURT, tenant, days_ago=74 - 9 * tenant)
    yield from _allocation_steps(
        FRANKFURT, "public-ipv4", "env", shops, days_ago=62, pause=11.3, org="acme"
    )
    yield DemoStep(5, FRANKFURT, _notes)
    yield DemoStep(3, FRANKFURT, lambda cluster: _reserve(cluster, "yellow-pool", *_DRAINED))
    yield _release_step(FRANKFURT, "nodes", 3, hours_ago=48)
    yield from _allocation_steps(
        FRANKFURT, "premium-ipv4", "env", banks[:6], days_ago=1, org="globex"
    )
    yield _release_step(FRANKFURT, "instances", 30, hours_ago=9)
    yield _release_step(FRANKFURT, "public-ipv4", 5, hours_ago=4)
    yield _report_step(FRANKFURT, 1, hours_ago=6)
    yield _report_step(FRANKFURT, 2, hours_ago=1)
    # All premium addresses are held: one environment queues a request, another is refused.
    yield DemoStep(0, FRANKFURT, lambda cluster: _request_exhausted(cluster, banks[6], wait=True))
    yield DemoStep(0, FRANKFURT, lambda cluster: _request_exhausted(cluster, banks[7], wait=False))


def _berlin() -> Iterator[DemoStep]:
    nodes = [f"ber-node-{number:02}" for number in range(1, 15)]
    yield DemoStep(
        60, BERLIN, lambda c: manifests.apply_manifests(GREEN_POOL_V2ALPHA1, c, author=AUTHOR)
    )
    yield from _allocation_steps(BERLIN, "nodes", "node", nodes, days_ago=58)
    yield from _allocation_steps(BERLIN, "green-pool", "node", nodes, days_ago=58)
    for tenant in range(11, 14):
        yield _instances_step(BERLIN, tenant, days_ago=20 * (14 - tenant) - 10)
    yield _release_step(BERLIN, "instances", 6, hours_ago=2)


def _frankfurt_pools(cluster: models.Cluster) -> None:
    manifests.apply_manifests(GREEN_POOL_V2, cluster, author=AUTHOR)
    _v4_pool(cluster, "blue-pool", "pod", 26, "10.40.0.0/20")
    _v4_pool(cluster, "yellow-pool", "pod", 24, "10.50.0.0/20", "10.50.16.0/20")
    _v4_pool(cluster, "public-ipv4", "ipv4", 32, "203.0.113.0/26")
    _v4_pool(cluster, "premium-ipv4", "ipv4", 32, "198.51.100.8/29")
    _v4_pool(cluster, "vm-lab", "vm", 32, "10.99.0.0/24")
    _reserve(cluster, "vm-lab", "10.99.0.0/24", "10.99.0.1-10.99.0.20", "gateways and DNS")


def _notes(cluster: models.Cluster) -> None:
    environments.declare(
        cluster, "initech", "shop-next", author=AUTHOR, description="Opens next quarter."
    )
    for kind, text in (
        ("info", "Moves to 10.50.16.0/20. The old half drains from Friday on."),
        ("warning", "Ask the storage team before you reserve more:\ntheir nodes restart at night."),
    ):
        journal.add(_pool(cluster, "yellow-pool"), text, kind, user=None, author=AUTHOR)


def _v4_pool(
    cluster: models.Cluster, name: str, category: str, mask_size: int, *cidrs: str
) -> None:
    entries = tuple(CidrEntry(IPv4Network(cidr)) for cidr in cidrs)
    families = {4: Family(entries, mask_size)}
    pools.create(cluster=cluster, name=name, category=category, families=families, author=AUTHOR)


def _pool(cluster: models.Cluster, name: str) -> models.Pool:
    return models.Pool.objects.get(cluster=cluster, name=name)


def _reserve(cluster: models.Cluster, pool: str, cidr: str, span: str, reason: str) -> None:
    pool_cidr = models.PoolCIDR.objects.get(pool=_pool(cluster, pool), cidr=cidr)
    pools.reserve(pool_cidr.pk, addresses.parse_range(span), author=AUTHOR, reason=reason)


def _allocation_steps(
    cluster: str,
    pool: str,
    kind: str,
    names: list[str],
    *,
    days_ago: float,
    pause: float = 1 / 96,
    org: str = "",
) -> Iterator[DemoStep]:
    """Yield steps that allocate one block for each holder, six holders at once, `pause` days apart."""
    holders = tuple(allocation.Holder(kind, name) for name in names)
    for number, first in enumerate(range(0, len(holders), 6)):
        demand = allocation.BlockDemand(holders=holders[first : first + 6], org=org)
        yield DemoStep(
            days_ago - number * pause, cluster, functools.partial(_allocate, pool, demand)
        )


def _allocate(pool: str, demand: allocation.BlockDemand, cluster: models.Cluster) -> None:
    requests.allocate(_pool(cluster, pool).pk, demand, author=AUTHOR)


def _instances_step(cluster: str, tenant: int, *, days_ago: int) -> DemoStep:
    names = (f"i-{tenant:02}{number:03}" for number in range(1, 31))
    demand = allocation.BlockDemand(
        holders=tuple(allocation.Holder("instance", name) for name in names),
        org=("acme", "globex", "initech")[tenant % 3],
        env=f"env-{tenant:02}",
    )
    return DemoStep(days_ago, cluster, functools.partial(_allocate, "instances", demand))


def _release_step(cluster: str, pool: str, count: int, *, hours_ago: float) -> DemoStep:
    """Return the step that releases every third held block of the pool, `count` of them."""

    def work(demo_cluster: models.Cluster) -> None:
        held = models.Block.objects.filter(pool=_pool(demo_cluster, pool), state="held").order_by(
            "cidr"
        )
        for block in list(held[: 3 * count : 3]):
            holder = allocation.Holder(block.holder_kind, block.holder_id)
            allocation.release(block.pk, holder, author=AUTHOR)

    return DemoStep(hours_ago / 24, cluster, work)


def _report_step(cluster: str, sequence: int, *, hours_ago: float) -> DemoStep:
    """Return the step in which tooling reports all instances but three, whose addresses leak."""

    def work(demo_cluster: models.Cluster) -> None:
        held = models.Block.objects.filter(
            pool=_pool(demo_cluster, "instances"), state="held"
        ).order_by("-cidr")
        holders = [
            references.ReferencedHolder(name) for name in held.values_list("holder_id", flat=True)
        ]
        report = references.ReferenceReport(
            demo_cluster, "instance", sequence, complete=True, holders=holders[3:]
        )
        references.ingest_report(report, author=AUTHOR)

    return DemoStep(hours_ago / 24, cluster, work)


def _request_exhausted(cluster: models.Cluster, env: str, *, wait: bool) -> None:
    demand = allocation.BlockDemand(holders=(allocation.Holder("env", env),), org="globex")
    with contextlib.suppress(errors.PoolExhausted):
        requests.allocate(_pool(cluster, "premium-ipv4").pk, demand, author=AUTHOR, wait=wait)


# --- clock and deletion ---------------------------------------------------------------------------


@contextlib.contextmanager
def _clock_moved_back(days: float) -> Iterator[None]:
    """Move the register's clock back by `days`, in this transaction."""
    with connection.cursor() as cursor:
        offset = timedelta(days=-days)
        cursor.execute(
            "SELECT set_config('ipam.clock_offset', %s, true)", [f"{offset.total_seconds()} s"]
        )
        yield
        cursor.execute("SELECT set_config('ipam.clock_offset', '', true)")


def _delete_cluster(cluster: models.Cluster) -> None:
    ids = list(models.Pool.objects.filter(cluster=cluster).values_list("pk", flat=True))
    spaces = list(models.AddressSpace.objects.filter(cluster=cluster).values_list("pk", flat=True))
    models.AllocationRequest.objects.filter(pool__in=ids).delete()
    models.Environment.objects.filter(cluster=cluster).delete()
    models.Block.objects.filter(space__in=spaces).delete()
    models.PoolCIDR.objects.filter(pool__in=ids).delete()
    models.Pool.objects.filter(pk__in=ids).delete()
    cluster_id = cluster.pk
    cluster.delete()
    with pgtrigger.ignore():
        models.BlockEvent.objects.filter(space_id__in=spaces).delete()
        models.FailureEvent.objects.filter(pgh_obj_id__in=ids).delete()
        models.PoolEvent.objects.filter(pgh_obj_id__in=ids).delete()
        models.PoolCIDREvent.objects.filter(pool_id__in=ids).delete()
        models.ReservedRangeEvent.objects.filter(pool_id__in=ids).delete()
        models.ClusterEvent.objects.filter(pgh_obj_id=cluster_id).delete()
        models.EnvironmentEvent.objects.filter(cluster_id=cluster_id).delete()
        models.JournalEntryEvent.objects.filter(cluster_id=cluster_id).delete()


_CONTAINERS = {
    "10.0.0.0/8": ("Data centres", "All sites."),
    "10.32.0.0/11": ("Frankfurt", "Pods of the clusters in Frankfurt."),
    "10.64.0.0/11": ("Berlin", "Planned for pods of the clusters in Berlin."),
    "10.99.0.0/16": ("Laboratory", "VMs of the laboratory."),
    "203.0.113.0/24": ("Public", "Bought addresses."),
}
_CONTAINER_MARK = (
    "Demo fleet."  # begins each description, so that only these containers are deleted
)


def load_containers(*, author: events.Author) -> None:
    """Create the containers that do not exist yet."""
    for text, (name, description) in _CONTAINERS.items():
        if not models.Container.objects.filter(cidr=text, space=None).exists():
            containers.create(
                addresses.parse_cidr(text),
                author=author,
                name=name,
                description=f"{_CONTAINER_MARK} {description}",
            )


def forget_containers() -> None:
    """Delete the containers and their events."""
    rows = models.Container.objects.filter(
        space=None, cidr__in=list(_CONTAINERS), description__startswith=_CONTAINER_MARK
    )
    ids = list(rows.values_list("pk", flat=True))
    rows.delete()
    with pgtrigger.ignore():
        models.ContainerEvent.objects.filter(pgh_obj_id__in=ids).delete()
