"""Findings about CIDRs whose addition or removal the cluster's object does not have yet."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from pools.clusters.reconcile import ingest
from pools.clusters.reconcile.handler import MANAGER, ReconcileFinding, SyncContext
from pools.core.cilium import podippool
from pools.core.kubernetes import managed_fields
from pools.models import CIDRMigration, Cluster, ObservedObject, PoolCIDR
from pools.models.cidr_migrations import MigrationOutcome
from pools.models.fields import Now
from pools.models.pools import Pending
from pools.platform import events
from pools.register import cluster_cidrs, pools


def update_pending(
    cluster: Cluster,
    *,
    author: events.Author,
    isolated: Callable[[str], AbstractContextManager[None]] = lambda _: contextlib.nullcontext(),
) -> None:
    """End pending changes that the cluster has, and mark new ones, after a sync has written.

    `isolated` opens the transaction of each change, given the name of its pool.
    """
    changes = cluster_cidrs.pending_changes(cluster)
    rows = PoolCIDR.objects.filter(pk__in=[change.id for change in changes])
    names = dict(rows.values_list("pk", "pool__name"))
    for change in changes:
        with isolated(names.get(change.id, "")):
            if change.gone:
                migrations = CIDRMigration.objects.filter(pool_cidr=change.id, ended_at=None)
                migrations.update(outcome=MigrationOutcome.REMOVED, ended_at=Now())
                pools.complete_removal(change.id, author=author)
            else:
                pools.set_pending(change.id, change.pending, author=author)


def end_pending(cluster: Cluster, author: events.Author) -> None:
    """End all pending changes of a cluster that is no longer connected."""
    update_pending(cluster, author=author)


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
    yield from ingest.find_each(
        context,
        podippool.KIND,
        [
            cidr for cidr in cidrs if manifests.get(cidr.pool.name)
        ],  # else the whole pool is reported
        lambda cidr: _finding(cidr, manifests[cidr.pool.name]),
        name=lambda cidr: cidr.pool.name,
    )


def _finding(cidr: PoolCIDR, manifest: dict[str, Any]) -> Iterator[ReconcileFinding]:
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
    yield ReconcileFinding(
        f"cidr_{cidr.pending}_pending", f"{cidr.pool.name} {cidr}", message, details=details
    )
