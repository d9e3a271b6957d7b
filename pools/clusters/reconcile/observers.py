"""Observers of completed full syncs, for conclusions from objects that the lists do not have.

Syncs of watch events and dry runs do not notify observers. A kind whose list was incomplete, or could not
be ingested, permits no conclusion (rule `unknown-is-not-absent`) and is not passed to observers.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime

from pools.clusters.reconcile.handler import SyncContext
from pools.clusters.reconcile.sync_runs import KindCounts

# Arguments: the context, the kinds that were listed and ingested completely, and the start of the sync by
# the database's clock, which is before any list.
Observer = Callable[[SyncContext, Collection[str], datetime], None]
OBSERVERS: list[Observer] = []  # filled by pools.extension


def notify(context: SyncContext, counts: Mapping[str, KindCounts], began: datetime) -> None:
    """Notify all observers of a full sync."""
    whole = frozenset(kind for kind in context.complete if not counts[kind].code)
    for observer in OBSERVERS:
        observer(context, whole, began)
