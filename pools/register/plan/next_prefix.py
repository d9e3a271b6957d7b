"""Create an object in the first free part of a container: the next free prefix.

All of it happens in one transaction under the lock of the address plan, so that concurrent calls never get
CIDRs that overlap. The constraints of address spaces hold besides.
"""

from collections.abc import Callable
from ipaddress import IPv6Network
from typing import Any, TypeVar

from pools.core import addresses, errors
from pools.core.cilium.podippool import CidrEntry, Family
from pools.models import Cluster, Container, Pool
from pools.platform import advisory_locks, events
from pools.register import clusters, pools
from pools.register.plan import containers, free_space
from pools.register.plan.free_space import scope_of

Created = TypeVar("Created")


def create_container(
    container_id: int,
    length: int,
    *,
    author: events.Author,
    **values: Any,
) -> Container:
    """Create a container in the next free prefix of a container, in the same address space."""

    def create(parent: Container, prefix: addresses.Network) -> Container:
        return containers.create(prefix, space=parent.space, author=author, **values)

    return _create_in_prefix(container_id, length, create, author)


def create_pool(
    container_id: int,
    length: int,
    *,
    author: events.Author,
    cluster: Cluster,
    mask_size: int,
    **values: Any,
) -> Pool:
    """Create a pool whose only CIDR is the next free prefix of a container; `values` are others of `pools.create`."""

    def create(parent: Container, prefix: addresses.Network) -> Pool:
        _require_cluster(parent, cluster)
        family = Family((CidrEntry(prefix),), mask_size)
        return pools.create(
            cluster=cluster, families={prefix.version: family}, author=author, **values
        )

    return _create_in_prefix(container_id, length, create, author)


def set_cluster_prefix(
    container_id: int, length: int, *, author: events.Author, cluster: Cluster
) -> Cluster:
    """Give a cluster without a prefix the next free prefix of a container, and divide it into pools."""

    def create(parent: Container, prefix: addresses.Network) -> Cluster:
        _require_cluster(parent, cluster)
        present = Cluster.objects.select_for_update(no_key=True).get(pk=cluster.pk)
        if present.cluster_prefix is not None:
            raise errors.ImmutableInUse(
                f"The cluster {cluster} has the prefix {present.cluster_prefix}."
            )
        if not isinstance(prefix, IPv6Network):
            raise errors.InvalidInput.for_field(
                "purpose", "cluster_prefix", "a cluster prefix is an IPv6 network", prefix
            )
        return clusters.change(cluster, {"cluster_prefix": prefix}, author=author)

    return _create_in_prefix(container_id, length, create, author)


def _create_in_prefix(
    container_id: int,
    length: int,
    create: Callable[[Container, addresses.Network], Created],
    author: events.Author,
) -> Created:
    """Call `create` with the container and its next free prefix. Raises NotFound, InvalidInput, NoFreePrefix."""
    with events.recorded_by(author):
        advisory_locks.lock_plan()
        rows = Container.objects.select_related("space__cluster")
        container = rows.filter(pk=container_id).first()
        if container is None:
            raise errors.NotFound("There is no such network container.")
        prefixes = free_space.find_prefixes(
            container.cidr,
            length,
            scope_of(container),
            order=free_space.Order.BEST_FIT,
            limit=1,
        )
        if not prefixes:
            raise errors.NoFreePrefix(f"The network container {container} has no free /{length}.")
        created = create(container, prefixes[0])
    return created  # noqa: RET504  # mypy: a context manager may swallow


def _require_cluster(container: Container, cluster: Cluster) -> None:
    """Raise InvalidInput if the address space of the container is not the one of the cluster's pools."""
    space = container.space
    if space is not None and (space.cluster_id != cluster.pk or space.name):
        message = f"the container belongs to the address space {space}"
        raise errors.InvalidInput.for_field("cluster", "other_address_space", message, cluster.name)
