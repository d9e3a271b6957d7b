"""Acknowledgement of an alert: somebody works on it, so that it is neither counted nor sent again.

It ends with the alert, at its time, or when the alert becomes more severe; `conditions.evaluation` ends it.
"""

from __future__ import annotations

from datetime import datetime

from django.db.models import Q, QuerySet

from pools.core import errors
from pools.models import Alert
from pools.platform import database

ACKNOWLEDGED = Q(ended_at=None, acknowledged_at__isnull=False)  # Alert.is_acknowledged
# The values of an alert that nobody acknowledged.
NONE = {
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
    _update(
        alert,
        acknowledged_at=now,
        acknowledged_by=by,
        acknowledged_until=until,
        acknowledged_reason=reason,
    )


def withdraw(alert: Alert) -> None:
    """Withdraw the acknowledgement of an open alert. Raises Conflict."""
    _update(alert, **NONE)


def end_expired(now: datetime) -> int:
    """End the acknowledgements of open alerts whose time has come; return their number."""
    expired: QuerySet[Alert] = Alert.objects.filter(ended_at=None, acknowledged_until__lte=now)
    return expired.update(**NONE)


def _update(alert: Alert, **values: object) -> None:
    if not Alert.objects.filter(pk=alert.pk, ended_at=None).update(**values):
        raise errors.Conflict("The alert has ended.")
    alert.refresh_from_db()
