"""Open alerts: by severity and cause, as REST and webhooks represent them, their acknowledgement, and silences.

A silence acknowledges alerts of a kind or a cluster when they open, and nobody is told of them, until a time. It hides
no alert that becomes more severe: that ends the acknowledgement. An alert that is still open at the end of its silence
is sent as if it opened then.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Case, Q, QuerySet, Value, When

from pools.core import errors
from pools.models import Alert, Cluster, Level, Pool, Silence
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


MOST_SILENCES = 100


@transaction.atomic
def create_silence(
    *, code: str, cluster: Cluster | None, until: datetime, reason: str, by: str
) -> Silence:
    """Silence alerts from now on; acknowledge the open ones that nobody did. Raises InvalidInput, Conflict."""
    now = database.now()
    if until <= now:
        raise errors.InvalidInput.for_field("until", "out_of_range", "must be in the future", until)
    if not code and cluster is None:
        raise errors.InvalidInput.for_field(
            "code", "required", "a condition or a cluster is expected"
        )
    if Silence.objects.count() >= MOST_SILENCES:
        raise errors.Conflict(f"The limit of {MOST_SILENCES} silences is reached.")
    silence = Silence.objects.create(
        code=code, cluster=cluster, until=until, reason=reason, made_by=by, created_at=now
    )
    alerts = _matching(silence, list(open_alerts().filter(acknowledged_at=None)))
    for alert in alerts:
        acknowledge(alert, by=by, reason=reason, until=until)
    return silence


@transaction.atomic
def end_silence(silence: Silence) -> None:
    """Delete a silence; the alerts that it acknowledged are as others from the next evaluation on."""
    rows = open_alerts().filter(
        acknowledged_until=silence.until,
        acknowledged_by=silence.made_by,
        acknowledged_reason=silence.reason,
    )
    keys = [alert.pk for alert in _matching(silence, list(rows))]
    Alert.objects.filter(pk__in=keys).update(acknowledged_until=database.now())
    silence.delete()


def apply_silences(alerts: Sequence[Alert], now: datetime) -> None:
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
    cluster_of = clusters_of(alerts)
    return [
        alert for alert in alerts if cluster_of[alert.code, alert.subject] == silence.cluster_id
    ]
