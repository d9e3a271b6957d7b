"""The handlers of this installation, registered by the app configs on `ready()`."""

from __future__ import annotations

import builtins

from pools.clusters.reconcile.handler import Handler
from pools.core.kubernetes.resources import Resource

_HANDLERS: dict[str, Handler] = {}


def register(handler: Handler) -> None:
    """One handler for each kind; the later one counts."""
    _HANDLERS[handler.kind] = handler


def all() -> tuple[Handler, ...]:  # noqa: A001  # read as registry.all()
    """In the order in which they were registered."""
    return tuple(_HANDLERS.values())


def resources() -> builtins.list[Resource]:
    """The versions of all kinds that are read, each kind's preferred one first."""
    return [resource for handler in all() for resource in handler.resources]
