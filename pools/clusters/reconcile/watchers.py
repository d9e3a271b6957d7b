"""Assignment of clusters to watchers: rows and heartbeats, without a leader.

Each live watcher has an equal share of the clusters. A watcher without a recent heartbeat is dead; the
others take its clusters over. Two watchers may watch one cluster for a moment, without harm
(pools.clusters.reconcile.watch_positions).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from django.db import connection, transaction

from pools.sql import statements

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
