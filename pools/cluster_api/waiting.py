"""Claims that wait for a free address: their clusters are woken when there is one."""

from __future__ import annotations

from pools.cluster_api import observed, register_pools
from pools.cluster_api.register_pools import PoolBinding
from pools.clusters.reconcile import leases
from pools.core.cluster_api import contract
from pools.core.cluster_api.conditions import READY, Reason
from pools.models import Connection, ObservedObject
from pools.models.connections import ManagedResource
from pools.register import usage

# Of both versions of the contract: v1beta1 has the reason in the same place.
_EXHAUSTED = {
    "status": {
        "conditions": [{"type": READY, "status": "False", "reason": Reason.POOL_EXHAUSTED.value}]
    }
}


def nudge_clusters() -> int:
    """Wake the clusters with claims whose pool was exhausted and has free addresses; return their number."""
    connections = Connection.objects.filter(
        managed_resources__contains=[ManagedResource.CLUSTER_API], paused=False
    )
    claims = ObservedObject.objects.filter(
        kind=contract.CLAIM_KIND,
        cluster__in=list(connections.values_list("cluster", flat=True)),
        manifest__contains=_EXHAUSTED,
        missed_at=None,
    )
    uids: dict[int, set[str]] = {}
    for cluster_id, uid in claims.values_list("cluster_id", "uid"):
        uids.setdefault(cluster_id, set()).add(uid)
    number = 0
    for connection in connections.filter(cluster__in=uids).select_related("cluster"):
        if _has_free_address(connection, uids[connection.cluster_id]):
            leases.nudge(connection.cluster_id, patient=True)
            number += 1
    return number


def _has_free_address(connection: Connection, uids: set[str]) -> bool:
    """Return True if the pool of one of these claims has a free address, and nothing is paused."""
    observation = observed.read_rows(connection.cluster, changed=())
    bindings = register_pools.bind(connection.cluster, observation.pools)
    waiting = [
        bindings.get(observed_claim.claim.pool)
        for observed_claim in observation.claims
        if observed_claim.claim.uid in uids
        and not observed_claim.claim.is_deleting
        and not observation.is_paused(observed_claim.claim)
    ]
    usable = [binding for binding in waiting if isinstance(binding, PoolBinding)]
    usages = usage.usage_by_pool({binding.pool.pk: binding.pool for binding in usable}.values())
    return any(usages[binding.pool.pk][binding.family].free for binding in usable)
