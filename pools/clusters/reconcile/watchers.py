"""Watchers: which clusters each watches, without a leader, and up to which resource version it ingested their events.

Each live watcher has an equal share of the clusters. A watcher without a recent heartbeat is dead; the
others take its clusters over. Two watchers may watch one cluster for a moment, without harm
(pools.clusters.reconcile.watch_positions).

A position changes by compare-and-set. A watcher that started from an older position drops its events,
because a list or another watcher has overtaken them.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from django.db import connection, transaction

from pools.sql import statements

if TYPE_CHECKING:
    from pools.clusters.reconcile.handler import SyncContext


DEAD_AFTER = 15  # seconds


@dataclass(frozen=True)
class Share:
    """A cluster to watch; `access` changes with its credentials.

    `nudged` changes whenever a change of the register may require a write to a managed cluster.
    """

    connection_id: int
    access: str
    positions: Any
    nudged: str = ""


def claim(name: str, max_clusters: int) -> list[Share]:
    """Send a heartbeat, take an equal share of the clusters, at most `max_clusters`, and return it."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(_HEARTBEAT, [name])
        cursor.execute(_QUOTA, {"dead_after": DEAD_AFTER})
        clusters, watchers = cursor.fetchone()
        quota = min(max_clusters, -(-clusters // watchers))
        cursor.execute(_RELEASE, [name, name, quota])
        cursor.execute(_TAKE, {"name": name, "dead_after": DEAD_AFTER, "quota": quota})
        cursor.execute(_OWN_SHARES, [name])
        return [
            Share(pk, access, json.loads(text), nudged)
            for pk, access, text, nudged in cursor.fetchall()
        ]


def leave(name: str) -> None:
    """Release the clusters of a watcher at once."""
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE pools_connection SET watched_by = '' WHERE watched_by = %s", [name])
        cursor.execute("DELETE FROM pools_watcher WHERE name = %s", [name])


_HEARTBEAT = """
    INSERT INTO pools_watcher (name, seen_at) VALUES (%s, ipam_clock())
    ON CONFLICT (name) DO UPDATE SET seen_at = EXCLUDED.seen_at
"""
_QUOTA = statements.read("pools/watcher_quota")
_RELEASE = """
    UPDATE pools_connection SET watched_by = '' WHERE watched_by = %s AND (paused OR id NOT IN (
        SELECT id FROM pools_connection WHERE watched_by = %s AND NOT paused ORDER BY id LIMIT %s))
"""
_TAKE = statements.read("pools/claim_connections")
_OWN_SHARES = """
    SELECT id, md5(concat_ws('|', server, sealed, in_cluster, identity)), positions::text,
        CASE mode WHEN 'managed' THEN COALESCE(nudged_at::text, '') ELSE '' END
    FROM pools_connection WHERE watched_by = %s AND NOT paused
"""


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
