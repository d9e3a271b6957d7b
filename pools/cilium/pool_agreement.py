"""Which pools and objects said the same when they were last compared, and which are to be compared.

A pass over a thousand pools that nobody changed reads none of them: what was compared is remembered
in `Pool.agreed`, with the versions of both.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from pools.core.cilium import podippool
from pools.models import Cluster, ObservedObject
from pools.platform import database


def mark_agreed(row_ids: Sequence[int]) -> None:
    """Remember that these objects and their pools say the same."""
    if row_ids:
        with connection.cursor() as cursor:
            cursor.execute(_AGREE, [list(row_ids)])


_AGREED = "o.uid || ' ' || o.resource_version || ' ' || p.version"
_AGREE = f"""
    UPDATE pools_pool p SET agreed = {_AGREED} FROM pools_observedobject o
    WHERE o.id = ANY(%s) AND p.cluster_id = o.cluster_id AND p.name = o.name
      AND p.category = 'pod' AND p.agreed <> {_AGREED}
"""  # noqa: S608  # our own texts
# Objects that were taken in, and that they or their pools were changed since.
_CHANGED = f"""
    SELECT o.id FROM pools_observedobject o
    LEFT JOIN pools_pool p ON p.cluster_id = o.cluster_id AND p.name = o.name
    WHERE o.cluster_id = %s AND o.kind = %s AND o.missed_at IS NULL
      AND (p.id IS NULL OR p.agreed <> {_AGREED})
"""  # noqa: S608


def changed_objects(cluster: Cluster) -> list[ObservedObject]:
    """Objects that do not agree with their pools, or may not, or have none; in order of name."""
    ids = [row[0] for row in database.rows(_CHANGED, [cluster.pk, podippool.KIND])]
    return list(ObservedObject.objects.filter(pk__in=ids).order_by("name")) if ids else []
