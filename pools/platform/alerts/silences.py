"""Silences: alerts of a kind or a cluster are acknowledged when they open, and nobody is told of them, until a time.

A silence hides no alert that becomes more severe: that ends the acknowledgement. An alert that is still open at the
end of its silence is sent as if it opened then.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from django.db import transaction

from pools.core import errors
from pools.models import Alert, Cluster, Silence
from pools.platform import database
from pools.platform.alerts import open_alerts

MOST = 100


@transaction.atomic
def create(*, code: str, cluster: Cluster | None, until: datetime, reason: str, by: str) -> Silence:
    """Silence alerts from now on; acknowledge the open ones that nobody did. Raises InvalidInput, Conflict."""
    now = database.now()
    if until <= now:
        raise errors.InvalidInput.for_field("until", "out_of_range", "must be in the future", until)
    if not code and cluster is None:
        raise errors.InvalidInput.for_field(
            "code", "required", "a condition or a cluster is expected"
        )
    if Silence.objects.count() >= MOST:
        raise errors.Conflict(f"The limit of {MOST} silences is reached.")
    silence = Silence.objects.create(
        code=code, cluster=cluster, until=until, reason=reason, made_by=by, created_at=now
    )
    alerts = _matching(silence, list(open_alerts.open_alerts().filter(acknowledged_at=None)))
    for alert in alerts:
        open_alerts.acknowledge(alert, by=by, reason=reason, until=until)
    return silence


@transaction.atomic
def end(silence: Silence) -> None:
    """Delete a silence; the alerts that it acknowledged are as others from the next evaluation on."""
    rows = open_alerts.open_alerts().filter(
        acknowledged_until=silence.until,
        acknowledged_by=silence.made_by,
        acknowledged_reason=silence.reason,
    )
    keys = [alert.pk for alert in _matching(silence, list(rows))]
    Alert.objects.filter(pk__in=keys).update(acknowledged_until=database.now())
    silence.delete()


def apply(alerts: Sequence[Alert], now: datetime) -> None:
    """Acknowledge the alerts, which open now and are not stored yet, that a silence is for; delete past silences."""
    Silence.objects.filter(until__lte=now).delete()
    if not alerts:
        return
    for silence in Silence.objects.order_by("until"):
        for alert in _matching(silence, alerts):
            alert.acknowledged_at, alert.acknowledged_until = now, silence.until
            alert.acknowledged_by, alert.acknowledged_reason = silence.made_by, silence.reason


def _matching(silence: Silence, alerts: Sequence[Alert]) -> list[Alert]:
    alerts = [alert for alert in alerts if silence.code in {"", alert.code}]
    if silence.cluster_id is None:
        return alerts
    cluster_of = open_alerts.clusters_of(alerts)
    return [
        alert for alert in alerts if cluster_of[alert.code, alert.subject] == silence.cluster_id
    ]
