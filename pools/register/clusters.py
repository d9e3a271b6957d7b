"""Create, change and remove clusters, and divide a cluster's IPv6 prefix into node and instance pools."""

from collections.abc import Collection, Mapping
from ipaddress import IPv6Network

from django.db import connection
from django.db.models import QuerySet

from pools.clusters.reconcile import leases
from pools.core import blocks, errors
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import AddressSpace, Block, Category, Cluster, Pool, PoolCIDR
from pools.platform import advisory_locks, attributes, database, events
from pools.register import pool_cidrs, pools
from pools.register.allocator import window

MOST_DNS_SERVERS = 16
LEAST_MTU, MOST_MTU = 1280, 65535  # IPv6 needs 1280
NODE_POOL = "nodes"
INSTANCE_POOL = "instances"


def create(
    name: str,
    *,
    author: events.Author,
    cluster_prefix: IPv6Network | None = None,
    node_prefix: IPv6Network | None = None,
    instance_prefix: IPv6Network | None = None,
    **values: object,
) -> Cluster:
    """Create a cluster with its address space and, if it has a prefix, its node and instance pools.

    Raises AlreadyExists, or InvalidInput (`cluster_prefix`, `outside_cluster_prefix`,
    `cidr_overlap`; `required` for a node or instance prefix without a cluster prefix).
    """
    if cluster_prefix is None and (node_prefix or instance_prefix):
        raise errors.InvalidInput.for_field(
            "cluster_prefix", "required", "the prefix to divide is required"
        )
    with events.recorded_by(author):
        if Cluster.objects.filter(name=name).exists():
            raise errors.AlreadyExists(f"A cluster named {name} already exists.")
        cluster = Cluster(name=name, cluster_prefix=cluster_prefix)
        attributes.assign(cluster, values)
        database.save(cluster)
        AddressSpace.objects.create(cluster=cluster)
        if cluster_prefix is not None:
            divide_prefix(
                cluster, cluster_prefix, node=node_prefix, instance=instance_prefix, author=author
            )
    return cluster


def divide_prefix(
    cluster: Cluster,
    prefix: IPv6Network,
    *,
    author: events.Author,
    node: IPv6Network | None = None,
    instance: IPv6Network | None = None,
    existing_categories: Collection[str] = (),
) -> list[Pool]:
    """Create the node pool and the instance pool of a cluster prefix; by default from its first two /64.

    No pool is created for the categories in `existing_categories`. Raises ImmutableInUse, or
    InvalidInput `outside_cluster_prefix` if a pool of the cluster is outside of the prefix.
    """
    with events.recorded_by(author):
        advisory_locks.lock_plan(shared=True)
        parts = blocks.divide_cluster_prefix(prefix, node=node, instance=instance)
        _require_pools_within(cluster, prefix)
        Cluster.objects.filter(pk=cluster.pk).update(cluster_prefix=str(prefix))
        cluster.refresh_from_db(fields=["cluster_prefix"])
        return [
            pools.create(
                cluster=cluster,
                name=name,
                category=category,
                families={6: Family((CidrEntry(part, ()),), 128)},
                author=author,
            )
            for name, category, part in zip(
                (NODE_POOL, INSTANCE_POOL), (Category.NODE, Category.INSTANCE), parts, strict=True
            )
            if category not in existing_categories
        ]


def change(
    cluster: Cluster,
    values: Mapping[str, object],
    *,
    author: events.Author,
    version: database.Version = None,
) -> Cluster:
    """Set the description, the attributes, the network settings of instances, or a missing prefix.

    Raises VersionMismatch, ImmutableInUse (another prefix is divided into pools), InvalidInput
    `outside_cluster_prefix`.
    """
    with events.recorded_by(author):
        if values.get("cluster_prefix"):
            advisory_locks.lock_plan(shared=True)  # before the cluster
        attributes.lock_definitions(values)
        row = _lock_cluster(cluster)
        database.require_version(row, version)
        attributes.assign(
            row, {name: value for name, value in values.items() if name != "cluster_prefix"}
        )
        row.version += 1
        database.save(row)
        if isinstance(prefix := values.get("cluster_prefix"), IPv6Network):
            _set_prefix(row, prefix, author=author)
    return Cluster.objects.get(pk=cluster.pk)


def _set_prefix(cluster: Cluster, prefix: IPv6Network, *, author: events.Author) -> None:
    """Set the prefix of a cluster and create the node and instance pools that it lacks."""
    if _lock_cluster(cluster).cluster_prefix == prefix:
        return
    parts: dict[str, IPv6Network] = {}
    for row in _require_pools_within(cluster, prefix).order_by("pool__category", "position"):
        parts.setdefault(row.pool.category, row.cidr)
    divide_prefix(
        cluster,
        prefix,
        node=parts.get(Category.NODE),
        instance=parts.get(Category.INSTANCE),
        existing_categories=frozenset(parts),
        author=author,
    )


def _lock_cluster(cluster: Cluster) -> Cluster:
    """Lock and return the cluster's row; changes of pools read its prefix (pools/register/pools.py)."""
    row = Cluster.objects.select_for_update(no_key=True).filter(pk=cluster.pk).first()
    if row is None:
        raise errors.NotFound("There is no such cluster.")
    return row


def _require_pools_within(cluster: Cluster, prefix: IPv6Network) -> QuerySet[PoolCIDR]:
    """Return the CIDRs of the cluster's node and instance pools, all of which must be in the prefix.

    Raises ImmutableInUse if another prefix is already divided, InvalidInput `outside_cluster_prefix`
    if a pool is outside of the prefix.
    """
    current_prefix = _lock_cluster(cluster).cluster_prefix
    cidrs = PoolCIDR.objects.filter(
        pool__cluster=cluster, pool__category__in=[Category.NODE, Category.INSTANCE]
    )
    if current_prefix not in {None, prefix} and cidrs.exists():
        raise errors.ImmutableInUse(
            f"The prefix {current_prefix} of {cluster} is divided into pools."
        )
    outside = cidrs.exclude(cidr__net_contained_or_equal=str(prefix)).select_related("pool")[:20]
    if outside:
        names = ", ".join(f"{row.cidr} of {row.pool.name}" for row in outside)
        message = f"pools are outside of {prefix}: {names}"
        raise errors.InvalidInput.for_field(
            "cluster_prefix", "outside_cluster_prefix", message, prefix
        )
    return cidrs


def remove(cluster: Cluster, *, author: events.Author, force: bool = False) -> None:
    """Delete a cluster with its pools; raise PoolInUse with the holders if blocks are held or cooling.

    With `force` (and a reason in `author`) its blocks are deleted too. Its history is kept in any case.
    """
    if force and not author.reason:
        raise errors.InvalidInput.for_field(
            "reason", "required", "Forcing the removal of a cluster needs a reason."
        )
    database.with_retries(lambda: _remove(cluster, author=author, force=force))


def _remove(cluster: Cluster, *, author: events.Author, force: bool) -> None:
    with events.recorded_by(author):
        leases.exclude_writers(cluster.pk)
        leases.nudge(cluster.pk)  # before the pools' locks, like every change of a pool
        _lock_cluster(cluster)
        ids = list(Pool.objects.filter(cluster=cluster).order_by("pk").values_list("pk", flat=True))
        for pool_id in ids:
            window.lock(pool_id)
        held = Block.objects.filter(space__in=list(cluster.spaces.values_list("pk", flat=True)))
        if force:
            # Rows of windows are deleted too: a concurrent allocation from them finds no block.
            with connection.cursor() as cursor:
                cursor.execute("SELECT set_config('ipam.forget', 'on', true)")
                held.delete()
                cursor.execute("SELECT set_config('ipam.forget', '', true)")
        else:
            pool_cidrs.refuse_in_use(held, f"The cluster {cluster}", errors.PoolInUse)
        for pool_id in ids:
            pools.delete(pool_id, author=author)
        Cluster.objects.filter(pk=cluster.pk).delete()
