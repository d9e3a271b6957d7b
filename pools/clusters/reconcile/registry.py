"""The handlers of this installation, in the order in which a sync calls them."""

from __future__ import annotations

from pools.clusters.reconcile.handler import Handler
from pools.core.kubernetes.resources import Resource

HANDLERS: list[Handler] = []  # filled by pools.extension


def resources() -> list[Resource]:
    """Return the versions of all kinds that are read, the preferred version of a kind first."""
    return [resource for handler in HANDLERS for resource in handler.resources]
