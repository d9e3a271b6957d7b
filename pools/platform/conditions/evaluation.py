"""Conditions become notices: opened when they are first found, changed with them, ended after them.

One evaluation at a time (an advisory lock); that a condition of a subject is open once holds a
constraint, whoever evaluates. What targets shall be told is written in the same transaction.
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
from pools.platform.conditions.registry import Found, Key

MOST = 200  # open notices of one code; how many more there are is told by one notice
MORE = "more"  # its subject

log = logging.getLogger(__name__)


@dataclass
class Outcome:
    """What an evaluation changed; `skipped` when another one is at work."""

    opened: list[Notice] = field(default_factory=list)
    changed: list[Notice] = field(default_factory=list)  # of another level than before
    ended: list[Notice] = field(default_factory=list)
    told: int = 0  # deliveries that were written
    skipped: bool = False


def evaluate() -> Outcome:
    """Look at every condition once; one that cannot be looked at leaves its notices as they are."""
    with transaction.atomic():
        if not _alone():
            return Outcome(skipped=True)
        now = database.now()
        known = {(one.code, one.subject): one for one in Notice.objects.filter(ended_at=None)}
        outcome, kept = Outcome(), dict(known)
        wanted, looked_at = _found(known)
        seen: list[int] = []
        for key, found in wanted.items():
            notice = kept.pop(key, None)
            if notice is None:
                outcome.opened.append(_notice(found, now))
            else:
                seen.append(notice.pk)
                if _differs(notice, found) and _take_over(notice, found, now):
                    outcome.changed.append(notice)
        codes = set(registry.codes())
        for (code, _), notice in kept.items():
            if code in looked_at or code not in codes:
                notice.ended_at = now
                outcome.ended.append(notice)
        Notice.objects.bulk_create(outcome.opened)
        Notice.objects.filter(pk__in=seen).update(seen_at=now)
        ended = [notice.pk for notice in outcome.ended]
        Notice.objects.filter(pk__in=ended).update(ended_at=now)
        outcome.told = outbox.write(
            [
                *((DeliveryEvent.OPENED, one) for one in outcome.opened),
                *((DeliveryEvent.CHANGED, one) for one in outcome.changed),
                *((DeliveryEvent.ENDED, one) for one in outcome.ended),
            ],
            now,
        )
    return outcome


def stand_in() -> Outcome | None:
    """Evaluate when the scheduler does not, which would otherwise tell nobody of its own end."""
    silence = scheduler.silence()
    return evaluate() if silence is not None and silence > scheduler.MOST_SILENCE else None


def tidy(days: int) -> int:
    """Forget notices that ended, and messages that were settled, so many days ago; how many."""
    if days <= 0:
        return 0
    before = database.now() - timedelta(days=days)
    old = Delivery.objects.exclude(state=DeliveryState.PENDING).filter(created_at__lt=before)
    gone = old.delete()[0]
    return gone + Notice.objects.filter(ended_at__lt=before).delete()[0]


def _alone() -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, 0)", [advisory_locks.CONDITIONS])
        return bool(cursor.fetchone()[0])


def _found(known: dict[Key, Notice]) -> tuple[dict[Key, Found], set[str]]:
    """What there is now, and the codes that were looked at."""
    wanted: dict[Key, Found] = {}
    broken: set[str] = set()
    for condition in registry.CONDITIONS:
        mine = {key: Level(one.level) for key, one in known.items() if key[0] in condition.codes}
        try:
            with transaction.atomic():
                found = _bounded(condition.find(mine), set(mine))
        except Exception:
            # Unknown is not absent, and one condition does not hide the others.
            log.exception("the condition %s cannot be looked at", condition.codes[0])
            broken |= {*condition.codes}
            continue
        wanted |= {one.key: one for one in found}
    return wanted, set(registry.codes()) - broken


def _bounded(found: Iterable[Found], known: set[Key]) -> list[Found]:
    """At most MOST of each code, those that are open first, and one that counts the others."""
    by_code: dict[str, list[Found]] = defaultdict(list)
    for one in found:
        by_code[one.code].append(one)
    kept: list[Found] = []
    for code, ones in by_code.items():
        ones.sort(key=lambda one: one.key not in known)
        kept += ones[:MOST]
        if more := ones[MOST:]:
            level = min((one.level for one in more), key=list(Level).index)
            title = f"{len(more)} more like “{more[0].title}”"
            kept.append(Found(code, MORE, level, title[:300]))
    return kept


def _notice(found: Found, now: datetime) -> Notice:
    return Notice(
        code=found.code,
        subject=found.subject,
        level=found.level,
        title=found.title[:300],
        detail=found.detail[:1000],
        url=found.url,
        since=now,
        seen_at=now,
    )


_TEXTS = ("level", "title", "detail", "url")


def _differs(notice: Notice, found: Found) -> bool:
    fresh = _notice(found, notice.since)
    return any(getattr(notice, name) != getattr(fresh, name) for name in _TEXTS)


def _take_over(notice: Notice, found: Found, now: datetime) -> bool:
    """Whether its level is another one now."""
    fresh, before = _notice(found, now), notice.level
    for name in _TEXTS:
        setattr(notice, name, getattr(fresh, name))
    notice.save(update_fields=_TEXTS)
    return notice.level != before
