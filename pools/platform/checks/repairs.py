"""The events of repairs: rows of windows and free spans have none of their own."""

from __future__ import annotations

from collections.abc import Iterable

from django.db import connection

from pools.models import ClusterEvent, PoolEvent


def of_pools(ids: Iterable[int]) -> None:
    """`pool.repaired`, by the author of the transaction (events.recorded), whose reason says what."""
    _record(PoolEvent, ids)


def of_clusters(ids: Iterable[int]) -> None:
    """`cluster.repaired`, where no pool of it was concerned."""
    _record(ClusterEvent, ids)


def _record(log: type[PoolEvent] | type[ClusterEvent], ids: Iterable[int]) -> None:
    own = [one.column for one in log._meta.concrete_fields if not one.name.startswith("pgh_")]
    columns = ", ".join(f'"{name}"' for name in own)
    table = log.pgh_tracked_model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {log._meta.db_table} (pgh_created_at, pgh_label, pgh_obj_id, pgh_context,"  # noqa: S608  # our names
            f" {columns}) SELECT ipam_now(), 'repaired', id,"
            f" NULLIF(current_setting('pghistory.context_metadata', true), '')::jsonb, {columns}"
            f" FROM {table} WHERE id = ANY(%s) ORDER BY id",
            [sorted(set(ids))],
        )
