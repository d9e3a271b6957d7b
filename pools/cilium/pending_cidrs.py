"""Updates of the pending state of CIDRs from the last observed objects of a cluster."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager

from pools.models import CIDRMigration, Cluster
from pools.models.cidr_migrations import MigrationOutcome
from pools.models.fields import Now
from pools.platform import events
from pools.register import cluster_cidrs, pools


def update_pending(
    cluster: Cluster,
    *,
    author: events.Author,
    open_transaction: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> None:
    """End pending changes that the cluster has, and mark new ones, after a sync has written.

    `open_transaction` opens the transaction of each change.
    """
    for change in cluster_cidrs.pending_changes(cluster):
        with open_transaction():
            if change.gone:
                migrations = CIDRMigration.objects.filter(pool_cidr=change.id, ended_at=None)
                migrations.update(outcome=MigrationOutcome.REMOVED, ended_at=Now())
                pools.complete_removal(change.id, author=author)
            else:
                pools.set_pending(change.id, change.pending, author=author)


def end_pending(cluster: Cluster, author: events.Author) -> None:
    """End all pending changes of a cluster that is no longer connected."""
    update_pending(cluster, author=author)
