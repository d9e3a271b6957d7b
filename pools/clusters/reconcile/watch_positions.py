"""Watch positions: the resource version of each kind up to which events were ingested.

A position changes by compare-and-set. A watcher that started from an older position drops its events,
because a list or another watcher has overtaken them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connection

if TYPE_CHECKING:
    from pools.clusters.reconcile.handler import SyncContext


@dataclass(frozen=True)
class Position:
    """An opaque resource version of a kind that is read in `api_version`."""

    api_version: str
    version: str


def read(positions: Any, kind: str) -> Position | None:
    """Return the position of a kind in Connection.positions."""
    entry = positions.get(kind) if isinstance(positions, dict) else None
    return Position(entry["api_version"], entry["version"]) if entry else None


def is_known(context: SyncContext, kind: str) -> bool:
    """Return True if all objects of a kind are known: listed by this sync run, or watched since a list."""
    if context.from_watch:
        return read(context.connection.positions, kind) is not None
    return kind in context.complete


def store(connection_id: int, positions: dict[str, Position]) -> None:
    """Store the positions of these kinds after their lists."""
    values = {kind: vars(position) for kind, position in positions.items()}
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pools_connection SET positions = positions || %s::jsonb WHERE id = %s",
            [json.dumps(values), connection_id],
        )


def drop(connection_id: int, kinds: list[str]) -> None:
    """Delete the positions of these kinds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pools_connection SET positions = positions - %s::text[]"
            " WHERE id = %s AND positions ?| %s::text[]",
            [kinds, connection_id, kinds],
        )


def is_current(connection_id: int, kind: str, position: Position) -> bool:
    """Return True if the kind is still at this position."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pools_connection WHERE id = %s AND positions -> %s = %s::jsonb",
            [connection_id, kind, json.dumps(vars(position))],
        )
        return cursor.fetchone() is not None


def move(connection_id: int, kind: str, position: Position, to: Position | None) -> bool:
    """Move a kind from `position` to `to`, None after a Gone; return False if it has moved meanwhile."""
    change = "positions - %s" if to is None else "positions || jsonb_build_object(%s, %s::jsonb)"
    values = [kind] if to is None else [kind, json.dumps(vars(to))]
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE pools_connection SET positions = {change}"  # noqa: S608  # our own texts
            " WHERE id = %s AND positions -> %s = %s::jsonb",
            [*values, connection_id, kind, json.dumps(vars(position))],
        )
        return bool(cursor.rowcount)
