"""Metrics of conditions: open alerts, and the thresholds that the alert rules of Prometheus compare with."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.db.models import Count

from pools.clusters import connections
from pools.models import Alert
from pools.models.alerts import Level
from pools.platform.conditions import registry
from pools.platform.metrics.registry import Value, value
from pools.register.conditions import clusters, pools, register


def values() -> Iterator[Value]:
    """Yield the numbers of open and acknowledged alerts of each code and level, and the thresholds."""
    rows = Alert.objects.filter(ended_at=None).order_by().values_list("code", "level")
    counts = {
        (code, level): (count, acknowledged)
        for code, level, count, acknowledged in rows.annotate(
            count=Count("pk"), acknowledged=Count("acknowledged_at")
        )
    }
    for code in registry.codes():
        for level in Level:
            count, acknowledged = counts.get((code, level), (0, 0))
            yield value("ipam_alerts_open", count, code=code, level=level)
            yield value("ipam_alerts_acknowledged", acknowledged, code=code, level=level)
    for code, level, threshold in (
        (pools.NEARLY_FULL, Level.WARNING, settings.IPAM_ALERT_WARNING_PERCENT / 100),
        (pools.NEARLY_FULL, Level.ERROR, settings.IPAM_ALERT_ERROR_PERCENT / 100),
        (pools.COOLING, Level.WARNING, settings.IPAM_ALERT_COOLING_PERCENT / 100),
        (clusters.STALE, Level.ERROR, connections.stale_after().total_seconds()),
        (register.SCHEDULER, Level.ERROR, settings.IPAM_ALERT_SCHEDULER_SECONDS),
    ):
        yield value("ipam_alert_threshold", threshold, code=code, level=level)
