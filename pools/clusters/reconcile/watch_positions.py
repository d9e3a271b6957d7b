"""Up to which version of a cluster each of its kinds was taken in: where a watch goes on.

Compared and set: whoever watched from an older position has events that a list, or another watcher,
has overtaken, and drops them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db import connection


@dataclass(frozen=True)
class Position:
    """A resource version, opaque, of the kind as it is served in `api_version`."""

    api_version: str
    version: str


def read(positions: Any, kind: str) -> Position | None:
    """The one of a kind in Connection.positions."""
    entry = positions.get(kind) if isinstance(positions, dict) else None
    return Position(entry["api_version"], entry["version"]) if entry else None


def store(connection_id: int, positions: dict[str, Position]) -> None:
    """After lists: the positions of these kinds."""
    values = {kind: vars(position) for kind, position in positions.items()}
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pools_connection SET positions = positions || %s::jsonb WHERE id = %s",
            [json.dumps(values), connection_id],
        )


def drop(connection_id: int, kinds: list[str]) -> None:
    """Forget the positions of these kinds."""
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pools_connection SET positions = positions - %s::text[]"
            " WHERE id = %s AND positions ?| %s::text[]",
            [kinds, connection_id, kinds],
        )


def is_current(connection_id: int, kind: str, position: Position) -> bool:
    """Whether the kind is still at this position."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM pools_connection WHERE id = %s AND positions -> %s = %s::jsonb",
            [connection_id, kind, json.dumps(vars(position))],
        )
        return cursor.fetchone() is not None


def move(connection_id: int, kind: str, position: Position, to: Position | None) -> bool:
    """From one position to the next, to none after a Gone; False when it is not there any more."""
    change = "positions - %s" if to is None else "positions || jsonb_build_object(%s, %s::jsonb)"
    values = [kind] if to is None else [kind, json.dumps(vars(to))]
    with connection.cursor() as cursor:
        cursor.execute(
            f"UPDATE pools_connection SET positions = {change}"  # noqa: S608  # our own texts
            " WHERE id = %s AND positions -> %s = %s::jsonb",
            [*values, connection_id, kind, json.dumps(vars(position))],
        )
        return bool(cursor.rowcount)
