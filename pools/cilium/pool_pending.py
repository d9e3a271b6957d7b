"""Findings about CIDRs whose addition or removal the cluster's object does not have yet."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pools.clusters.reconcile.handler import MANAGER, ReconcileFinding, SyncContext
from pools.core.cilium import podippool
from pools.core.kubernetes import managed_fields
from pools.models import ObservedObject, PoolCIDR
from pools.models.pools import Pending
from pools.register import cluster_cidrs

_ADDITION = (
    "The register has {cidr} in the pool {pool}, but the cluster's object does not. No blocks are"
    " allocated from it. {owner}"
)
_REMOVAL = (
    "The register has removed {cidr} from the pool {pool}, but the cluster's object still has it. No"
    " other pool can get it. {owner}"
)


def findings(context: SyncContext) -> Iterator[ReconcileFinding]:
    """Yield a finding for each pending CIDR, with the managers of the object's list of CIDRs."""
    cidrs = cluster_cidrs.pending_cidrs(context.cluster)
    if not cidrs:
        return
    rows = ObservedObject.objects.filter(
        cluster=context.cluster, kind=podippool.KIND, name__in={cidr.pool.name for cidr in cidrs}
    )
    manifests = dict(rows.values_list("name", "manifest"))
    for cidr in cidrs:
        if manifest := manifests.get(
            cidr.pool.name
        ):  # without an object the whole pool is reported
            yield _finding(cidr, manifest)


def _finding(cidr: PoolCIDR, manifest: dict[str, Any]) -> ReconcileFinding:
    path = ("spec", f"ipv{cidr.cidr.version}", "cidrs")
    owners = {entry.manager for entry in managed_fields.parse(manifest) if entry.owns(path)}
    other_managers = sorted(owners - {MANAGER})
    owner = "The next sync writes the object."
    if other_managers:
        owner = f"{', '.join(other_managers)} owns spec.{path[1]}.cidrs: change it there, or take the field over."
    addition = cidr.pending == Pending.ADDITION
    message = (_ADDITION if addition else _REMOVAL).format(
        cidr=cidr, pool=cidr.pool.name, owner=owner
    )
    details = {"pool": cidr.pool.name, "cidr": str(cidr), "managers": other_managers}
    return ReconcileFinding(
        f"cidr_{cidr.pending}_pending", f"{cidr.pool.name} {cidr}", message, details=details
    )
