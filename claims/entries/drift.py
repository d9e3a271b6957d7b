"""Resolution of an IPPool's drift: keep the register or adopt the object (pools/clusters/drift)."""

from __future__ import annotations

from claims.core import ippool
from claims.core.resources import IPPOOL
from claims.entries import ippool_sync
from claims.models import IPPool
from pools.clusters import drift
from pools.models import ObservedObject
from pools.models.connections import ManagedResource
from pools.platform import events


def _keep(drift_object: drift.ClusterObject) -> int:
    ippools = IPPool.objects.filter(cluster=drift_object.cluster, name=drift_object.name)
    return ippools.update(follows_cluster=False, agreed="")


def _adopt(
    drift_object: drift.ClusterObject, observed_object: ObservedObject, author: events.Author
) -> int:
    """Adopt the object. Raises InvalidInput (the object), AlreadyExists (the network has another IPPool)."""
    ippool_spec = ippool.parse(observed_object.manifest)
    ippools = IPPool.objects.filter(cluster=drift_object.cluster, name=drift_object.name)
    follows = ippools.values_list("follows_cluster", flat=True).first()
    adopted_ippool = ippool_sync.upsert_ippool(
        drift_object.cluster,
        ippool_spec,
        uid=observed_object.uid,
        register_decides=False,
        author=author,
    )
    # The register keeps control of an IPPool that it controlled; only the contents are adopted.
    IPPool.objects.filter(pk=adopted_ippool.pk).update(follows_cluster=bool(follows), agreed="")
    return adopted_ippool.pk


RESOLVER = drift.DriftResolver(
    IPPOOL.kind,
    ManagedResource.IPPOOL_STATUS,
    _keep,
    _adopt,
    ("claims.add_ippool", "claims.change_ippool", "claims.change_entry"),
)
