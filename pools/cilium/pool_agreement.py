"""Records which pools equal their objects, so that a sync compares changed ones only.

`Pool.agreed` has the versions of pool and object that were last found to be equal. A sync of a
thousand unchanged pools reads none of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from django.db import connection

from pools.core.cilium import podippool
from pools.models import Cluster, ObservedObject
from pools.platform import database


def mark_agreed(row_ids: Sequence[int]) -> None:
    """Record that these objects equal their pools."""
    if row_ids:
        with connection.cursor() as cursor:
            cursor.execute(_AGREE, [list(row_ids)])


_AGREED = "o.uid || ' ' || o.resource_version || ' ' || p.version"
_AGREE = f"""
    UPDATE pools_pool p SET agreed = {_AGREED} FROM pools_observedobject o
    WHERE o.id = ANY(%s) AND p.cluster_id = o.cluster_id AND p.name = o.name
      AND p.category = 'pod' AND p.agreed <> {_AGREED}
"""  # noqa: S608  # our own texts
# Objects without a pool, and objects that changed, or whose pool changed, since they were equal.
_CHANGED = f"""
    SELECT o.id FROM pools_observedobject o
    LEFT JOIN pools_pool p ON p.cluster_id = o.cluster_id AND p.name = o.name
    WHERE o.cluster_id = %s AND o.kind = %s AND o.missed_at IS NULL
      AND (p.id IS NULL OR p.agreed <> {_AGREED})
"""  # noqa: S608


def changed_objects(cluster: Cluster) -> list[ObservedObject]:
    """Return the objects, by name, that may differ from their pools or have none."""
    ids = [row[0] for row in database.rows(_CHANGED, [cluster.pk, podippool.KIND])]
    return list(ObservedObject.objects.filter(pk__in=ids).order_by("name")) if ids else []
