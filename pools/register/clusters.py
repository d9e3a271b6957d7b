"""Clusters, and the division of a cluster's IPv6 prefix into node and instance pools."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from ipaddress import IPv6Network

from django.db import connection
from django.db.models import QuerySet

from pools.clusters.reconcile import leases
from pools.core import blocks, errors
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import AddressSpace, Block, Cluster, Pool, PoolCIDR
from pools.models.pools import Category
from pools.platform import database, events
from pools.register import pools
from pools.register.allocator import window

NODE_POOL = "nodes"
INSTANCE_POOL = "instances"


def create(
    name: str,
    *,
    author: events.Author,
    cluster_prefix: IPv6Network | None = None,
    node_prefix: IPv6Network | None = None,
    instance_prefix: IPv6Network | None = None,
    description: str = "",
) -> Cluster:
    """A cluster with its address space and, given a prefix, its node and instance pools.

    Raises AlreadyExists, or InvalidInput (`cluster_prefix`, `outside_cluster_prefix`,
    `cidr_overlap`; `required` for parts of no prefix).
    """
    if cluster_prefix is None and (node_prefix or instance_prefix):
        raise errors.InvalidInput.for_field(
            "cluster_prefix", "required", "name the prefix to divide"
        )
    with events.recorded(author):
        if Cluster.objects.filter(name=name).exists():
            raise errors.AlreadyExists(f"There is a cluster {name}.")
        cluster = Cluster(name=name, cluster_prefix=cluster_prefix, description=description)
        database.save(cluster)
        AddressSpace.objects.create(cluster=cluster)
        if cluster_prefix is not None:
            divide(
                cluster, cluster_prefix, node=node_prefix, instance=instance_prefix, author=author
            )
    return cluster


def divide(
    cluster: Cluster,
    prefix: IPv6Network,
    *,
    author: events.Author,
    node: IPv6Network | None = None,
    instance: IPv6Network | None = None,
    present: Collection[str] = (),
) -> list[Pool]:
    """Make the node pool and the instance pool of a cluster prefix; by default its first two /64.

    A category of which the cluster has a pool is `present`: no other is made. Raises what
    `_require_pools_within` raises.
    """
    with events.recorded(author):
        parts = blocks.divide_cluster_prefix(prefix, node=node, instance=instance)
        _require_pools_within(cluster, prefix)
        Cluster.objects.filter(pk=cluster.pk).update(cluster_prefix=str(prefix))
        cluster.refresh_from_db(fields=["cluster_prefix"])
        return [
            pools.create(
                pools.PoolSpec(
                    cluster=cluster,
                    name=name,
                    category=category,
                    families={6: Family((CidrEntry(part, ()),), 128)},
                ),
                author=author,
            )
            for name, category, part in zip(
                (NODE_POOL, INSTANCE_POOL), (Category.NODE, Category.INSTANCE), parts, strict=True
            )
            if category not in present
        ]


def change(cluster: Cluster, values: Mapping[str, object], *, author: events.Author) -> Cluster:
    """Set what instances are told of their network, or the description."""
    values = dict(values)
    with events.recorded(author):
        prefix = values.pop("cluster_prefix", None)
        for name, value in values.items():
            setattr(cluster, name, value)
        database.save(cluster)
        if isinstance(prefix, IPv6Network):
            _set_prefix(cluster, prefix, author=author)
    return Cluster.objects.get(pk=cluster.pk)


def _set_prefix(cluster: Cluster, prefix: IPv6Network, *, author: events.Author) -> None:
    """Give a cluster the prefix that it lacks, and the node and instance pools that it lacks."""
    if _locked(cluster).cluster_prefix == prefix:
        return
    parts: dict[str, IPv6Network] = {}
    for row in _require_pools_within(cluster, prefix).order_by("pool__category", "position"):
        parts.setdefault(row.pool.category, row.cidr)
    divide(
        cluster,
        prefix,
        node=parts.get(Category.NODE),
        instance=parts.get(Category.INSTANCE),
        present=frozenset(parts),
        author=author,
    )


def _locked(cluster: Cluster) -> Cluster:
    """The cluster's row, locked against pools that look at its prefix (pools/register/pools.py)."""
    return Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)


def _require_pools_within(cluster: Cluster, prefix: IPv6Network) -> QuerySet[PoolCIDR]:
    """The CIDRs of the cluster's node and instance pools, all of which lie in the prefix.

    Raises ImmutableInUse when another prefix is divided already, InvalidInput
    `outside_cluster_prefix` when a pool lies elsewhere.
    """
    present = _locked(cluster).cluster_prefix
    cidrs = PoolCIDR.objects.filter(
        pool__cluster=cluster, pool__category__in=[Category.NODE, Category.INSTANCE]
    )
    if present not in {None, prefix} and cidrs.exists():
        raise errors.ImmutableInUse(f"The prefix {present} of {cluster} is divided into pools.")
    outside = cidrs.exclude(cidr__net_contained_or_equal=str(prefix)).select_related("pool")[:20]
    if outside:
        names = ", ".join(f"{row.cidr} of {row.pool.name}" for row in outside)
        message = f"pools lie outside of {prefix}: {names}"
        raise errors.InvalidInput.for_field(
            "cluster_prefix", "outside_cluster_prefix", message, prefix
        )
    return cidrs


def remove(cluster: Cluster, *, author: events.Author, force: bool = False) -> None:
    """Forget a cluster with its pools; PoolInUse with the holders while blocks are held or cooling.

    With `force` (and a reason in `by`) it goes with all that it held. Its history stays either way.
    """
    if force and not author.reason:
        raise errors.InvalidInput.for_field("reason", "required", "Forcing it needs a reason.")
    database.with_retries(lambda: _remove(cluster, author=author, force=force))


def _remove(cluster: Cluster, *, author: events.Author, force: bool) -> None:
    with events.recorded(author):
        leases.nudge(cluster.pk)  # before the pools' locks, like every change of a pool
        ids = list(Pool.objects.filter(cluster=cluster).order_by("pk").values_list("pk", flat=True))
        for pool_id in ids:
            window.lock(pool_id)
        held = Block.objects.filter(space__in=list(cluster.spaces.values_list("pk", flat=True)))
        if force:
            # The windows too: whoever is taking a block of them at this moment finds none.
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('ipam.forget', 'on', true)")
                held.delete()
                cursor.execute("SELECT set_config('ipam.forget', '', true)")
        else:
            pools.refuse_in_use(held, f"The cluster {cluster}", errors.PoolInUse)
        for pool_id in ids:
            pools.delete(pool_id, author=author)
        Cluster.objects.filter(pk=cluster.pk).delete()
