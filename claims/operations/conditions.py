"""Conditions of VM networks (pools/platform/conditions)."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Q, Sum

from claims.models import IPPool
from pools.models.alerts import Level
from pools.platform.conditions.registry import ActiveCondition, Condition, OpenLevels
from pools.register.conditions import register

_MOST = 1000  # clusters


def _duplicates(_context: OpenLevels) -> Iterator[ActiveCondition]:
    """Yield a condition for each cluster with duplicates, as counted for the IPPools' conditions."""
    rows = IPPool.objects.filter(Q(duplicate_ips__gt=0) | Q(duplicate_macs__gt=0))
    summed = rows.values("cluster_id", "cluster__name").annotate(
        ips=Sum("duplicate_ips"), macs=Sum("duplicate_macs")
    )
    for row in summed.order_by("cluster_id")[:_MOST]:
        yield ActiveCondition(
            register.DUPLICATE,
            f"cluster/{row['cluster_id']}/vm-networks",
            Level.ERROR,
            f"Duplicates in the VM networks of cluster {row['cluster__name']}",
            f"{row['ips']} addresses and {row['macs']} MAC addresses are named more than once.",
            f"/admin/claims/entry/?cluster={row['cluster_id']}"
            f"&duplicate={'ip' if row['ips'] else 'mac'}",
        )


ALL = (Condition((register.DUPLICATE,), _duplicates),)
