"""How a difference of an IPPool is settled: the register is right, or the object (pools/clusters/drift)."""

from __future__ import annotations

from claims.core import ippool
from claims.core.resources import IPPOOL
from claims.entries import ippool_sync
from claims.models import IPPool
from pools.clusters import drift
from pools.models import ObservedObject
from pools.models.connections import Duty
from pools.platform import events


def _keep(of: drift.Object) -> int:
    found = IPPool.objects.filter(cluster=of.cluster, name=of.name)
    return found.update(follows_cluster=False, agreed="")


def _adopt(of: drift.Object, seen: ObservedObject, author: events.Author) -> int:
    """Raises InvalidInput (the object), AlreadyExists (the network has another IPPool)."""
    said = ippool.parse(seen.manifest)
    found = IPPool.objects.filter(cluster=of.cluster, name=of.name)
    follows = found.values_list("follows_cluster", flat=True).first()
    taken = ippool_sync.take_in(of.cluster, said, uid=seen.uid, decides=False, author=author)
    # What was the register's stays so: it only says the same now.
    IPPool.objects.filter(pk=taken.pk).update(follows_cluster=bool(follows), agreed="")
    return taken.pk


SETTLER = drift.Settler(
    IPPOOL.kind,
    Duty.IPPOOL_STATUS,
    _keep,
    _adopt,
    ("claims.add_ippool", "claims.change_ippool", "claims.change_entry"),
)
