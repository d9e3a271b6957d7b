"""Metrics of observed CIDRs, and of the clashes that they are part of."""

from __future__ import annotations

from collections.abc import Iterator

from django.db.models import Count, Q

from pools.models import Cluster, ObservedCIDR
from pools.observed.findings import CLASH
from pools.platform.metrics.registry import Value, value


def values() -> Iterator[Value]:
    """Yield the observed CIDRs by cluster and kind, and the clashes of each cluster."""
    cidrs = ObservedCIDR.objects.order_by().values_list("space__cluster__name", "kind")
    for cluster, kind, count in cidrs.annotate(count=Count("pk")):
        yield value("ipam_observed_cidrs", count, cluster=cluster, kind=kind)
    clashes = Count("findings", filter=Q(findings__code=CLASH))
    for cluster, count in (
        Cluster.objects.order_by().annotate(count=clashes).values_list("name", "count")
    ):
        yield value("ipam_address_clashes_detected", count, cluster=cluster)
