"""The handlers of this installation, in the order in which they are asked."""

from __future__ import annotations

from pools.clusters.reconcile.handler import Handler
from pools.core.kubernetes.resources import Resource

HANDLERS: list[Handler] = []  # filled by pools.extension


def resources() -> list[Resource]:
    """The versions of all kinds that are read, each kind's preferred one first."""
    return [resource for handler in HANDLERS for resource in handler.resources]
