"""Registers of a given shape, made fast; only the allocator under test is measured."""

import itertools
from ipaddress import ip_address, ip_network

from django.db import connection

from pools.core import addresses
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import Block, Category, Cluster, FreeSpan, Pool
from pools.platform import events
from pools.register import clusters, pools
from pools.register.allocator import window

BY = events.Author(actor="benchmark", source="command")
_names = itertools.count(1)


def cluster() -> Cluster:
    return clusters.create(f"benchmark-{next(_names)}", author=BY)


def pool(cidr: str, *, category: str = Category.INSTANCE, ranges: int = 0) -> Pool:
    """A pool of host-sized blocks in a cluster of its own, with so many reserved ranges."""
    network = ip_network(cidr)
    last = int(network.broadcast_address)
    reserved = tuple(
        addresses.AddressRange(ip_address(last - 4 * n - 3), ip_address(last - 4 * n - 2))
        for n in range(ranges)
    )
    family = Family((CidrEntry(network, reserved),), network.max_prefixlen)
    families = {network.version: family}
    return pools.create(
        cluster=cluster(), name="pool", category=category, families=families, author=BY
    )


def fill(chosen: Pool, count: int) -> None:
    """Let `count` blocks of the pool be held, by one statement and without events."""
    family = 4 if chosen.mask_size_v4 else 6
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE pools_block DISABLE TRIGGER USER")
        for first in range(0, count, 100_000):
            texts = window.take_free_blocks(chosen, family, min(100_000, count - first))
            cursor.execute(
                "INSERT INTO pools_block (pool_id, space_id, category, family, cidr, state,"
                " withheld, holder_kind, holder_id, holder_uid, org, env, allocated_at)"
                " SELECT %s, %s, %s, %s, c, 'held', false, 'instance', 'filled-' || c::text, '',"
                " 'org', 'env-' || n %% 100, now() FROM unnest(%s::cidr[]) WITH ORDINALITY AS t(c, n)",
                [chosen.pk, chosen.space_id, chosen.category, family, texts],
            )
        cursor.execute("ALTER TABLE pools_block ENABLE TRIGGER USER")
        cursor.execute("ALTER TABLE pools_block DISABLE TRIGGER pools_block_recovers")  # as it was


def analyze() -> None:
    """Fresh statistics, and the visibility map that autovacuum would have written by now."""
    with connection.cursor() as cursor:
        cursor.execute("VACUUM ANALYZE pools_block")


def clear() -> None:
    """Empty the register: benchmarks must not see each other's rows."""
    with connection.cursor() as cursor:
        cursor.execute(
            "TRUNCATE pools_block, pools_freespan, pools_blockevent, pools_idempotencykey,"
            " pools_allocationrequest, pools_environment, pools_poolusage CASCADE"
        )
    left = (Block.objects.exists(), FreeSpan.objects.exists())
    if any(left):
        raise RuntimeError("the register is not empty")
