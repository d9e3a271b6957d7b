"""What a cluster's pool objects have, beside what the register says of the same pools.

A list of CIDRs that somebody else owns is not written. So a CIDR that is removed here while the object
has it stays, as a pending removal, and one that is added waits, as a pending addition, until the object
follows: nothing new is handed out of either. Objects whose CIDRs cannot be read change nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from django.db.models import Q

from pools.core import addresses, errors
from pools.core.cilium import podippool
from pools.models import Cluster, Connection, ObservedObject, Pool, PoolCIDR
from pools.models.connections import ManagedResource
from pools.models.pools import Category
from pools.platform import database
from pools.sql import statements


def is_written_to_cluster(pool: Pool) -> bool:
    """Return True if the pool's object is written from the register."""
    if pool.category != Category.POD:
        return False
    connection = Connection.objects.filter(cluster=pool.cluster_id).first()
    return connection is not None and connection.manages(ManagedResource.POOLS)


def cluster_has_cidr(pool: Pool, cidr: addresses.Network) -> bool | None:
    """Return whether the cluster's object of this pool has the CIDR; None: no object, or unknown."""
    if pool.category != Category.POD:
        return None
    rows = ObservedObject.objects.filter(
        cluster=pool.cluster_id, kind=podippool.KIND, name=pool.name
    )
    cidr_lists = [listed for listed in rows.values_list("cidrs", flat=True) if listed is not None]
    return any(cidr in listed for listed in cidr_lists) if cidr_lists else None


def refuse_observed_elsewhere(pool: Pool, cidr: addresses.Network) -> None:
    """Raise CIDROverlap if another pool's object in the cluster has the CIDR, or a part of it."""
    if pool.space.name:
        return
    ((name, other_cidr),) = database.rows(_ELSEWHERE, [pool.cluster_id, pool.name, str(cidr)])
    if name is not None:
        raise errors.CIDROverlap(
            f"{cidr} overlaps {other_cidr}, which the pool {name} has in the cluster {pool.cluster}."
        )


_ELSEWHERE = "SELECT name, cidr::text FROM ipam_observed_elsewhere(%s, %s, %s::cidr)"


class CIDRChange(NamedTuple):
    """A CIDR whose state is another than the cluster's object asks for."""

    id: int
    pending: str  # the state that it should have; "" for none
    gone: bool  # removed here, and the object has it no more


# A pool whose object cannot be read (cidrs IS NULL) is left as it is.
_CHANGES = statements.read("pools/pending_cidr_changes")


def pending_changes(cluster: Cluster) -> list[CIDRChange]:
    """The CIDRs of pod pools that do not stand as the cluster's objects, as last seen, ask for."""
    connection = Connection.objects.filter(cluster=cluster).first()
    written = connection is not None and connection.manages(ManagedResource.POOLS)
    values = {"cluster": cluster.pk, "kind": podippool.KIND, "written": written}
    return [CIDRChange(*row) for row in database.rows(_CHANGES, values)]


def pending_cidrs(cluster: Cluster) -> list[PoolCIDR]:
    """The CIDRs of a cluster's pod pools whose change the cluster has not followed."""
    rows = PoolCIDR.objects.filter(~Q(pending=""), pool__cluster=cluster)
    return list(rows.select_related("pool__cluster").order_by("pool__name", "position"))
