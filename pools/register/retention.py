"""Delete old events, segment by segment of the audit chain; nothing else deletes events."""

import logging
import time
from datetime import UTC, timedelta
from typing import Any

import pgtrigger
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from pools.models import LIVE, AuditSegment, Block, BlockEvent
from pools.platform import audit, database, events

log = logging.getLogger(__name__)

SECONDS = 120  # approximate time limit of one run
_REPEAT_AFTER = timedelta(days=1)  # then kept events of blocks that are free by now are deleted too


def purge_events(days: int) -> int:
    """Delete the events of segments whose whole day is older than `days`; return their number.

    Events of blocks in use are kept, so that the allocation of a held block is always known. A segment
    that does not verify is kept as evidence. A purged segment records how many of its events are left.
    """
    if days <= 0:
        return 0
    audit.seal(seconds=SECONDS / 4)
    now = database.now()
    kept_since = (now - timedelta(days=days)).astimezone(UTC)
    kept_since = kept_since.replace(hour=0, minute=0, second=0, microsecond=0)
    due = AuditSegment.objects.filter(newest_at__lt=kept_since).filter(
        Q(purged_at=None) | Q(retained__gt=0, purged_at__lt=now - _REPEAT_AFTER)
    )
    deadline = time.monotonic() + SECONDS
    deleted = 0
    for number in due.order_by("id").values_list("pk", flat=True).iterator(chunk_size=1000):
        deleted += _purge_segment(number)
        if time.monotonic() > deadline:
            break
    return deleted


@transaction.atomic
def _purge_segment(number: int) -> int:
    rows = AuditSegment.objects.select_for_update(of=("self",)).select_related("layout")
    segment = rows.get(pk=number)
    if not audit.is_intact(segment):
        log.error("audit: segment %s does not verify; its events are kept", number)
        return 0
    deleted = retained_count = 0
    with pgtrigger.ignore(*events.append_only_triggers()):
        for model in events.event_models().values():
            inside = model.objects.filter(pgh_id__gt=segment.after_id, pgh_id__lte=segment.last_id)
            deleted += _deletable(model, inside, segment.after_id).delete()[0]
            retained_count += inside.count()
    AuditSegment.objects.filter(pk=number).update(purged_at=database.now(), retained=retained_count)
    return deleted


def _deletable(model: Any, rows: Any, after: int) -> Any:
    """Return the events to delete; those of a block oldest first, so that the last one is kept longest."""
    if model is not BlockEvent:
        return rows
    live = Block.objects.filter(state__in=LIVE).values("pk")
    older = BlockEvent.objects.filter(
        cidr=OuterRef("cidr"), pgh_obj_id=OuterRef("pgh_obj_id"), pgh_id__lte=after
    )
    return rows.exclude(pgh_obj_id__in=live).exclude(Exists(older))
