"""Open alerts: by severity and cause, as REST and webhooks represent them, and their acknowledgement."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db.models import Case, Q, QuerySet, Value, When

from pools.core import errors
from pools.models import Alert, Pool
from pools.models.alerts import Level
from pools.platform import database
from pools.platform.conditions import registry
from pools.platform.conditions.registry import Key
from pools.platform.rest import fields
from pools.platform.rest.serializers import Representation

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


_OBJECT = re.compile(r"(cluster|pool)/([0-9]+)")


def clusters_of(alerts: Iterable[Alert]) -> dict[Key, int | None]:
    """Return the id of the cluster that each alert is about, by its subject or its cause; None of other alerts."""
    objects = {
        (alert.code, alert.subject): _OBJECT.match(alert.subject) or _OBJECT.match(alert.cause)
        for alert in alerts
    }
    pools = [match[2] for match in objects.values() if match and match[1] == "pool"]
    cluster_of = dict(Pool.objects.filter(pk__in=pools).values_list("pk", "cluster_id"))
    return {
        key: match and (int(match[2]) if match[1] == "cluster" else cluster_of.get(int(match[2])))
        for key, match in objects.items()
    }


# It ends with the alert, at its time, or when the alert becomes more severe; `conditions.evaluation` ends it.
ACKNOWLEDGED = Q(ended_at=None, acknowledged_at__isnull=False)  # Alert.is_acknowledged
# The values of an alert that nobody acknowledged.
NOT_ACKNOWLEDGED = {
    "acknowledged_at": None,
    "acknowledged_by": "",
    "acknowledged_until": None,
    "acknowledged_reason": "",
}


def acknowledge(alert: Alert, *, by: str, reason: str, until: datetime | None = None) -> None:
    """Acknowledge an open alert until a time, or until it ends. Raises Conflict, InvalidInput."""
    now = database.now()
    if until is not None and until <= now:
        raise errors.InvalidInput.for_field(
            "acknowledged_until", "out_of_range", "must be in the future", until
        )
    _update_open(
        alert,
        acknowledged_at=now,
        acknowledged_by=by,
        acknowledged_until=until,
        acknowledged_reason=reason,
    )


def withdraw_acknowledgement(alert: Alert) -> None:
    """Withdraw the acknowledgement of an open alert. Raises Conflict."""
    _update_open(alert, **NOT_ACKNOWLEDGED)


def end_expired_acknowledgements(now: datetime) -> set[int]:
    """End the acknowledgements of open alerts whose time has come; return their ids."""
    rows: QuerySet[Alert] = Alert.objects.filter(ended_at=None, acknowledged_until__lte=now)
    expired = set(rows.values_list("pk", flat=True))
    rows.update(**NOT_ACKNOWLEDGED)
    return expired


def _update_open(alert: Alert, **values: object) -> None:
    if not Alert.objects.filter(pk=alert.pk, ended_at=None).update(**values):
        raise errors.Conflict("The alert has ended.")
    alert.refresh_from_db()


def link(path: str) -> str:
    """Return the URL of a page; without the host if IPAM_URL is not set."""
    return f"{settings.IPAM_URL.rstrip('/')}{path}" if path else ""


class LinkField(fields.TextField):
    """The URL of a page whose path is stored."""

    def to_representation(self, value: Any) -> str:
        return link(value)


class RunbookField(fields.TextField):
    """The URL of the runbook of a code; "" without one."""

    def to_representation(self, value: Any) -> str:
        name = registry.runbook(value)
        return link(f"/admin/runbooks/{name}/") if name else ""


class AlertSerializer(Representation):
    """An alert about a condition, from its first detection to its end."""

    id = fields.IntegerField()
    code = fields.TextField()
    subject = fields.TextField()
    level = fields.ChoiceField(Level.values)
    title = fields.TextField()
    detail = fields.TextField()
    open = fields.FlagField(source="is_open")
    since = fields.TimeField()
    seen_at = fields.TimeField()
    ended_at = fields.TimeField(allow_null=True)
    cause = fields.TextField()
    link = LinkField(source="url")
    runbook = RunbookField(source="code")
    acknowledged = fields.FlagField(source="is_acknowledged")
    acknowledged_at = fields.TimeField(allow_null=True)
    acknowledged_by = fields.TextField()
    acknowledged_until = fields.TimeField(allow_null=True)
    acknowledged_reason = fields.TextField()
