"""Open alerts: by severity, counted for the menu, and grouped by cause for the overview."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Case, Q, QuerySet, Value, When

from pools.models import Alert
from pools.models.alerts import Level
from pools.platform.conditions import registry

MOST = 2000  # open alerts that are grouped, the most severe first
SHOWN = 20  # open alerts on the page of an object

# The position of a level, for sorting: 0 is the most severe one.
SEVERITY = Case(*(When(level=level, then=Value(rank)) for rank, level in enumerate(Level)))


@dataclass(frozen=True)
class AlertGroup:
    """Open alerts with one cause, the most severe first."""

    alerts: Sequence[Alert]

    @property
    def lead(self) -> Alert:
        """The alert that stands for the group."""
        return self.alerts[0]

    @property
    def others(self) -> Sequence[Alert]:
        return self.alerts[1:]

    @property
    def since(self) -> datetime:
        return min(alert.since for alert in self.alerts)


def open_alerts() -> QuerySet[Alert]:
    """Return the open alerts, the most severe first, and the oldest first within a level."""
    return Alert.objects.filter(ended_at=None).order_by(SEVERITY, "pk")


def urgent_alerts() -> QuerySet[Alert]:
    """Return the open alerts that somebody has to act on: errors and warnings that nobody acknowledged."""
    return open_alerts().exclude(level=Level.INFO).filter(acknowledged_at=None)


def alert_groups(*, acknowledged: bool = False) -> list[AlertGroup]:
    """Return the open alerts grouped by cause, the group with the most severe alert first.

    Alerts that are acknowledged are in groups of their own, which `acknowledged` returns.

    Within a group, alerts of one level are in the order in which the conditions are registered.
    """
    positions = {code: position for position, code in enumerate(registry.codes())}
    alerts_by_cause: dict[object, list[Alert]] = defaultdict(list)
    for alert in open_alerts().filter(acknowledged_at__isnull=not acknowledged)[:MOST]:
        alerts_by_cause[alert.cause or (alert.code, alert.subject)].append(alert)
    levels = list(Level)
    return [
        AlertGroup(
            sorted(
                alerts,
                key=lambda alert: (
                    levels.index(Level(alert.level)),
                    positions.get(alert.code, len(positions)),
                ),
            )
        )
        for alerts in alerts_by_cause.values()
    ]


def same_cause(alert: Alert) -> QuerySet[Alert]:
    """Return the other open alerts with the cause of an alert."""
    if not alert.cause:
        return Alert.objects.none()
    return open_alerts().filter(cause=alert.cause).exclude(pk=alert.pk)


def alerts_about(path: str) -> QuerySet[Alert]:
    """Return the open alerts whose subject or cause is an object, such as `pool/12`, or a part of it."""
    below = f"{path}/"
    return open_alerts().filter(
        Q(subject=path) | Q(subject__startswith=below) | Q(cause=path) | Q(cause__startswith=below)
    )
