"""Evaluation of the conditions: notices are opened, updated and ended as conditions appear, change and end.

Only one evaluation runs at a time (an advisory lock), and a constraint allows one open notice per condition
and subject. The messages for webhook targets are written in the same transaction.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from django.db import connection, transaction

from pools.models import Delivery, Notice
from pools.models.notices import DeliveryEvent, DeliveryState, Level
from pools.platform import advisory_locks, database, scheduler
from pools.platform.alerts import outbox
from pools.platform.conditions import registry
from pools.platform.conditions.registry import ActiveCondition, Key

MOST = 200  # open notices of one code; one more notice says how many others there are
MORE = "more"  # the subject of that notice

log = logging.getLogger(__name__)


@dataclass
class Outcome:
    """The changes of an evaluation; `skipped` is True if another evaluation was running."""

    opened: list[Notice] = field(default_factory=list)
    changed: list[Notice] = field(default_factory=list)  # notices whose level changed
    ended: list[Notice] = field(default_factory=list)
    deliveries: int = 0  # messages that were written for webhook targets
    skipped: bool = False


def evaluate() -> Outcome:
    """Evaluate every condition once; a condition that cannot be evaluated keeps its open notices."""
    with transaction.atomic():
        if not _lock():
            return Outcome(skipped=True)
        now = database.now()
        open_notices = {
            (notice.code, notice.subject): notice for notice in Notice.objects.filter(ended_at=None)
        }
        outcome, remaining = Outcome(), dict(open_notices)
        active, evaluated_codes = _evaluate_all(open_notices)
        seen_ids: list[int] = []
        for key, condition in active.items():
            notice = remaining.pop(key, None)
            if notice is None:
                outcome.opened.append(_notice(condition, now))
            else:
                seen_ids.append(notice.pk)
                if _differs(notice, condition) and _update(notice, condition, now):
                    outcome.changed.append(notice)
        codes = set(registry.codes())
        for (code, _), notice in remaining.items():
            if code in evaluated_codes or code not in codes:
                notice.ended_at = now
                outcome.ended.append(notice)
        Notice.objects.bulk_create(outcome.opened)
        Notice.objects.filter(pk__in=seen_ids).update(seen_at=now)
        ended = [notice.pk for notice in outcome.ended]
        Notice.objects.filter(pk__in=ended).update(ended_at=now)
        outcome.deliveries = outbox.write(
            [
                *((DeliveryEvent.OPENED, notice) for notice in outcome.opened),
                *((DeliveryEvent.CHANGED, notice) for notice in outcome.changed),
                *((DeliveryEvent.ENDED, notice) for notice in outcome.ended),
            ],
            now,
        )
    return outcome


def evaluate_without_scheduler() -> Outcome | None:
    """Evaluate if the scheduler has stopped, which would otherwise never report its own failure."""
    seconds = scheduler.seconds_since_tick()
    return evaluate() if seconds is not None and seconds > scheduler.MOST_SILENCE else None


def tidy(days: int) -> int:
    """Delete ended notices and settled messages that are older than `days`; return their number."""
    if days <= 0:
        return 0
    before = database.now() - timedelta(days=days)
    old = Delivery.objects.exclude(state=DeliveryState.PENDING).filter(created_at__lt=before)
    deleted = old.delete()[0]
    return deleted + Notice.objects.filter(ended_at__lt=before).delete()[0]


def _lock() -> bool:
    """Return True if no other evaluation is running."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, 0)", [advisory_locks.CONDITIONS])
        return bool(cursor.fetchone()[0])


def _evaluate_all(
    open_notices: dict[Key, Notice],
) -> tuple[dict[Key, ActiveCondition], set[str]]:
    """Return the active conditions, and the codes that could be evaluated."""
    active: dict[Key, ActiveCondition] = {}
    failed: set[str] = set()
    for condition in registry.CONDITIONS:
        levels = {
            key: Level(notice.level)
            for key, notice in open_notices.items()
            if key[0] in condition.codes
        }
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
            title = f"{len(more)} more like “{more[0].title}”"
            limited.append(ActiveCondition(code, MORE, level, title[:300]))
    return limited


def _notice(condition: ActiveCondition, now: datetime) -> Notice:
    return Notice(
        code=condition.code,
        subject=condition.subject,
        level=condition.level,
        title=condition.title[:300],
        detail=condition.detail[:1000],
        url=condition.url,
        since=now,
        seen_at=now,
    )


_FIELDS = ("level", "title", "detail", "url")


def _differs(notice: Notice, condition: ActiveCondition) -> bool:
    current = _notice(condition, notice.since)
    return any(getattr(notice, name) != getattr(current, name) for name in _FIELDS)


def _update(notice: Notice, condition: ActiveCondition, now: datetime) -> bool:
    """Copy the condition to its notice. Return True if the notice's level changed."""
    current, previous_level = _notice(condition, now), notice.level
    for name in _FIELDS:
        setattr(notice, name, getattr(current, name))
    notice.save(update_fields=_FIELDS)
    return notice.level != previous_level
