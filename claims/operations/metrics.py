"""Metrics of VM networks."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count, Q

from claims.models import IndexEntry
from pools.platform.metrics.registry import Value, value


def values() -> Iterator[Value]:
    """Index entries the number of conflicting index entries by cluster; clusters without any are already 0."""
    rows = IndexEntry.objects.filter(Q(duplicate_mac=True) | Q(duplicate_ip=True)).order_by()
    counted = rows.values_list("network__cluster__name").annotate(count=Count("pk"))
    for cluster, count in counted:
        yield value("ipam_duplicates_detected", count, cluster=cluster)
