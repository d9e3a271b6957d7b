"""Evaluation of the conditions: alerts are opened, updated and ended as conditions appear, change and end.

Only one evaluation runs at a time (an advisory lock), and a constraint allows one open alert per condition
and subject. The messages for webhook targets are written in the same transaction.
"""

import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext

from pools.models import Alert, Delivery, DeliveryEvent, DeliveryState, Level
from pools.platform import advisory_locks, database
from pools.platform.alerts import open_alerts, outbox
from pools.platform.conditions import registry
from pools.platform.conditions.registry import ActiveCondition, Key

MOST = 200  # open alerts of one code; one more alert says how many others there are
MORE = "more"  # the subject of that alert

log = logging.getLogger(__name__)


@dataclass
class Outcome:
    """The changes of an evaluation; `skipped` is True if another evaluation was running."""

    opened: list[Alert] = field(default_factory=list)
    changed: list[Alert] = field(default_factory=list)  # alerts whose level changed
    ended: list[Alert] = field(default_factory=list)
    deliveries: int = 0  # messages that were written for webhook targets
    skipped: bool = False


def evaluate(found: Mapping[str, Sequence[ActiveCondition]] | None = None) -> Outcome:
    """Evaluate every condition once; a condition that cannot be evaluated keeps its open alerts.

    `found` has what a task has found out, by code; then another evaluation is waited for.
    """
    with transaction.atomic():
        if not _lock(wait=found is not None):
            return Outcome(skipped=True)
        now = database.now()
        expired = open_alerts.end_expired_acknowledgements(now)
        alerts_by_key = {
            (alert.code, alert.subject): alert for alert in Alert.objects.filter(ended_at=None)
        }
        outcome, remaining = Outcome(), dict(alerts_by_key)
        active, evaluated_codes = _evaluate_all(alerts_by_key, found or {})
        seen_ids: list[int] = []
        for key, condition in active.items():
            alert = remaining.pop(key, None)
            if alert is None:
                outcome.opened.append(_alert(condition, now))
            else:
                seen_ids.append(alert.pk)
                if _differs(alert, condition) and _update(alert, condition, now):
                    outcome.changed.append(alert)
        codes = set(registry.codes())
        for (code, _subject), alert in remaining.items():
            if code in evaluated_codes or code not in codes:
                alert.ended_at = now
                outcome.ended.append(alert)
        open_alerts.apply_silences(outcome.opened, now)
        Alert.objects.bulk_create(outcome.opened)
        Alert.objects.filter(pk__in=seen_ids).update(seen_at=now)
        ended = [alert.pk for alert in outcome.ended]
        Alert.objects.filter(pk__in=ended).update(ended_at=now)
        outcome.deliveries = outbox.write(
            [
                *((DeliveryEvent.OPENED, alert) for alert in outcome.opened),
                # Whoever was not told of them while they were silenced is told now.
                *(
                    (DeliveryEvent.OPENED, alert)
                    for alert in alerts_by_key.values()
                    if alert.pk in expired and alert.is_open
                ),
                *((DeliveryEvent.CHANGED, alert) for alert in outcome.changed),
                *((DeliveryEvent.ENDED, alert) for alert in outcome.ended),
            ],
            now,
        )
        outcome.deliveries += outbox.write_digests(now)
    return outcome


def evaluate_without_scheduler() -> Outcome | None:
    """Evaluate if the scheduler has stopped, which would otherwise never report its own failure."""
    seconds = seconds_since_scheduler_tick()
    return (
        evaluate()
        if seconds is not None and seconds > settings.IPAM_ALERT_SCHEDULER_SECONDS
        else None
    )


def tidy(days: int) -> int:
    """Delete ended alerts and settled messages that are older than `days`; return their number.

    Messages about events that have arrived are deleted after a day: the log has the events.
    """
    now = database.now()
    settled = Delivery.objects.exclude(state=DeliveryState.PENDING)
    arrived = settled.filter(event=DeliveryEvent.EVENT, state=DeliveryState.DELIVERED)
    deleted = arrived.filter(created_at__lt=now - timedelta(days=1)).delete()[0]
    if days <= 0:
        return deleted
    before = now - timedelta(days=days)
    deleted += settled.filter(created_at__lt=before).delete()[0]
    return deleted + Alert.objects.filter(ended_at__lt=before).delete()[0]


def _lock(*, wait: bool) -> bool:
    """Return True if no other evaluation is running."""
    if not wait:
        return advisory_locks.try_lock(advisory_locks.CONDITIONS)
    advisory_locks.take(advisory_locks.CONDITIONS)
    return True


def _evaluate_all(
    alerts_by_key: dict[Key, Alert], found: Mapping[str, Sequence[ActiveCondition]]
) -> tuple[dict[Key, ActiveCondition], set[str]]:
    """Return the active conditions, and the codes that could be evaluated."""
    active: dict[Key, ActiveCondition] = {}
    failed: set[str] = set()
    for condition in registry.CONDITIONS:
        levels = {
            key: Level(alert.level)
            for key, alert in alerts_by_key.items()
            if key[0] in condition.codes
        }
        if condition.find is None:
            failed |= {*condition.codes} - found.keys()
            active |= {one.key: one for code in condition.codes for one in found.get(code, ())}
            continue
        try:
            with transaction.atomic():
                conditions = _limit(condition.find(levels), set(levels))
        except Exception:
            # Unknown is not absent; and one condition does not hide the others.
            log.exception("condition %s cannot be evaluated", condition.codes[0])
            failed |= {*condition.codes}
            continue
        active |= {active_condition.key: active_condition for active_condition in conditions}
    return active, set(registry.codes()) - failed


def _limit(conditions: Iterable[ActiveCondition], open_keys: set[Key]) -> list[ActiveCondition]:
    """Return at most MOST conditions of each code, open ones first, and one that counts the others."""
    by_code: dict[str, list[ActiveCondition]] = defaultdict(list)
    for condition in conditions:
        by_code[condition.code].append(condition)
    limited: list[ActiveCondition] = []
    for code, of_code in by_code.items():
        of_code.sort(key=lambda condition: condition.key not in open_keys)
        limited += of_code[:MOST]
        if more := of_code[MOST:]:
            level = min((condition.level for condition in more), key=list(Level).index)
            title = gettext("%(count)s more like “%(title)s”") % {
                "count": len(more),
                "title": more[0].title,
            }
            limited.append(ActiveCondition(code, MORE, level, title[:300]))
    return limited


def _alert(condition: ActiveCondition, now: datetime) -> Alert:
    return Alert(
        code=condition.code,
        subject=condition.subject,
        level=condition.level,
        title=condition.title[:300],
        detail=condition.detail[:1000],
        url=condition.url,
        cause=condition.cause,
        since=now,
        seen_at=now,
    )


_FIELDS = ("level", "title", "detail", "url", "cause")


def _differs(alert: Alert, condition: ActiveCondition) -> bool:
    current = _alert(condition, alert.since)
    return any(getattr(alert, name) != getattr(current, name) for name in _FIELDS)


def _update(alert: Alert, condition: ActiveCondition, now: datetime) -> bool:
    """Copy the condition to its alert. Return True if the alert's level changed.

    A more severe level ends the acknowledgement: it was given for the less severe one.
    """
    current, previous_level = _alert(condition, now), alert.level
    values = {name: getattr(current, name) for name in _FIELDS}
    levels = list(Level)
    if levels.index(Level(current.level)) < levels.index(Level(previous_level)):
        values |= open_alerts.NOT_ACKNOWLEDGED
    for name, value in values.items():
        setattr(alert, name, value)
    alert.save(update_fields=values)
    return alert.level != previous_level


SCHEDULER_TICK = "ipam_scheduler_last_tick_timestamp_seconds"


def seconds_since_scheduler_tick() -> float | None:
    """Return the seconds since the scheduler's last tick; None before its first."""
    rows = database.rows(
        "SELECT extract(epoch FROM ipam_clock())::float8 - value FROM pools_measure"
        " WHERE name = %s",
        [SCHEDULER_TICK],
    )
    return float(rows[0][0]) if rows else None
