"""Events of repairs: the rows of windows and free spans that a repair changes have no events of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from django.db import connection

from pools.models import ClusterEvent, PoolEvent


def record_pool_repairs(ids: Iterable[int]) -> None:
    """Record `pool.repaired` for each pool; the author is that of the transaction (events.recorded_by)."""
    _record(PoolEvent, ids)


def record_cluster_repairs(ids: Iterable[int]) -> None:
    """Record `cluster.repaired` for each cluster, for repairs that concern none of its pools."""
    _record(ClusterEvent, ids)


def _record(log: Any, ids: Iterable[int]) -> None:
    fields = [field for field in log._meta.concrete_fields if not field.name.startswith("pgh_")]
    columns = ", ".join(f'"{field.column}"' for field in fields)
    table = log.pgh_tracked_model._meta.db_table
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO {log._meta.db_table} (pgh_created_at, pgh_label, pgh_obj_id, pgh_context,"  # noqa: S608  # our names
            f" {columns}) SELECT ipam_now(), 'repaired', id,"
            f" NULLIF(current_setting('pghistory.context_metadata', true), '')::jsonb, {columns}"
            f" FROM {table} WHERE id = ANY(%s) ORDER BY id",
            [sorted(set(ids))],
        )
