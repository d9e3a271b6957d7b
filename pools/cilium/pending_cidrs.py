"""Bring the pending state of CIDRs in line with what the cluster's objects, as last seen, say."""

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
    holding: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
) -> None:
    """End what the cluster has followed, and mark what it has not, once a pass has written.

    `holding` opens the transaction of each change.
    """
    for change in cluster_cidrs.pending_changes(cluster):
        with holding():
            if change.gone:
                migrations = CIDRMigration.objects.filter(pool_cidr=change.id, ended_at=None)
                migrations.update(outcome=MigrationOutcome.REMOVED, ended_at=Now())
                pools.complete_removal(change.id, author=author)
            else:
                pools.set_pending(change.id, change.pending, author=author)


def end_pending(cluster: Cluster, author: events.Author) -> None:
    """Without a connection the register alone says what the cluster's pools have."""
    update_pending(cluster, author=author)
