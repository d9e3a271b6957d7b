"""Who is told of a full pass, when all of it is done: what the lists were without, and since when.

A pass that was begun by a watch, or that is tried out, observes nothing. Of a kind whose list was not
complete, or could not be taken in, nothing may be concluded (rule
`unknown-is-not-absent`): it is not among the kinds told.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from pools.clusters.reconcile.handler import SyncContext
from pools.clusters.reconcile.sync_runs import KindCounts

# The pass, the kinds that were listed and taken in whole, and when it began, by the database's clock:
# before anything was listed.
Observer = Callable[[SyncContext, Collection[str], datetime], None]
OBSERVERS: list[Observer] = []  # filled by pools.extension


def notify(context: SyncContext, counts: Mapping[str, KindCounts], began: datetime) -> None:
    """Tell all observers of a full pass."""
    whole = frozenset(kind for kind in context.complete if not counts[kind].code)
    for observer in OBSERVERS:
        observer(context, whole, began)
