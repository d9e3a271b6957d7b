"""Compare the CIDRs of a cluster's pool objects with the register.

The register does not write a list of CIDRs that another field manager owns. Therefore a CIDR that is
removed in the register while the object has it stays as a pending removal, and an added one is a pending
addition until the object has it. No block is allocated from either. An object whose CIDRs cannot be
read changes nothing.
"""

from __future__ import annotations

from typing import NamedTuple

from django.db.models import Q

from pools.core import addresses, errors
from pools.core.cilium import podippool
from pools.models import Cluster, Connection, ManagedResource, ObservedObject, Pool, PoolCIDR
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
    """Return True if the cluster's object of this pool has the CIDR; None without an object or if unknown."""
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
    ((name, other_cidr),) = database.rows(
        _FIND_OBSERVED_ELSEWHERE, [pool.cluster_id, pool.name, str(cidr)]
    )
    if name is not None:
        raise errors.CIDROverlap(
            f"{cidr} overlaps {other_cidr}, which the pool {name} has in the cluster {pool.cluster}."
        )


_FIND_OBSERVED_ELSEWHERE = "SELECT name, cidr::text FROM ipam_observed_elsewhere(%s, %s, %s::cidr)"


class CIDRChange(NamedTuple):
    """A CIDR whose pending state differs from what the cluster's object requires."""

    id: int
    pending: str  # the pending state that it should have; "" for none
    gone: bool  # removed in the register, and the object does not have it any more


# A pool whose object cannot be read (cidrs IS NULL) is left unchanged.
_FIND_CHANGES = statements.read("pools/pending_cidr_changes")


def pending_changes(cluster: Cluster) -> list[CIDRChange]:
    """Return the CIDRs of pod pools whose pending state differs from the objects as last observed."""
    connection = Connection.objects.filter(cluster=cluster).first()
    written = connection is not None and connection.manages(ManagedResource.POOLS)
    values = {"cluster": cluster.pk, "kind": podippool.KIND, "written": written}
    return [CIDRChange(*row) for row in database.rows(_FIND_CHANGES, values)]


def pending_cidrs(cluster: Cluster) -> list[PoolCIDR]:
    """Return the CIDRs of a cluster's pod pools with a change that the cluster has not applied yet."""
    rows = PoolCIDR.objects.filter(~Q(pending=""), pool__cluster=cluster)
    return list(rows.select_related("pool__cluster").order_by("pool__name", "position"))
