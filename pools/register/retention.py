"""Events go with their segment of the audit chain, and in no other way."""

from __future__ import annotations

import logging
import time
from datetime import UTC, timedelta
from typing import Any

import pgtrigger
from django.db import transaction
from django.db.models import Exists, OuterRef, Q

from pools.models import AuditSegment, Block, BlockEvent, SegmentName
from pools.models.blocks import LIVE
from pools.platform import database, events
from pools.platform.audit import sealing, verification

log = logging.getLogger(__name__)

SECONDS = 120  # of a run, about
_AGAIN = timedelta(days=1)  # then kept events of blocks that are free by now go too


def purge(days: int) -> int:
    """Delete the events of segments whose whole day is older than so many days; how many went.

    Events of blocks in use stay, so that who holds a block is known however long it has been. A segment
    that does not verify stays as it is: it is evidence. What is left of a purged one is told by it.
    """
    if days <= 0:
        return 0
    sealing.seal(seconds=SECONDS / 4)
    now = database.now()
    last_day = (now - timedelta(days=days)).astimezone(UTC).date()
    due = AuditSegment.objects.filter(day__lt=last_day).filter(
        Q(purged_at=None) | Q(kept__gt=0, purged_at__lt=now - _AGAIN)
    )
    deadline = time.monotonic() + SECONDS
    gone = 0
    for number in due.order_by("id").values_list("pk", flat=True).iterator(chunk_size=1000):
        gone += _purge(number)
        if time.monotonic() > deadline:
            break
    return gone


@transaction.atomic
def _purge(number: int) -> int:
    rows = AuditSegment.objects.select_for_update(of=("self",)).select_related("layout")
    segment = rows.get(pk=number)
    if not verification.is_intact(segment):
        log.error("audit: segment %s of %s does not verify; its events stay", number, segment.day)
        return 0
    gone = kept_count = 0
    with pgtrigger.ignore(*events.append_only_triggers()):
        for model in events.event_models().values():
            inside = model.objects.filter(pgh_id__gt=segment.after_id, pgh_id__lte=segment.last_id)
            gone += _old(model, inside, segment.after_id).delete()[0]
            kept_count += inside.count()
    changes: dict[str, Any] = {"purged_at": database.now(), "kept": kept_count}
    if not kept_count:
        changes["marks"] = b""
        SegmentName.objects.filter(segment=number).delete()
    AuditSegment.objects.filter(pk=number).update(**changes)
    return gone


def _old(model: Any, rows: Any, after: int) -> Any:
    """The events that go. A block's go oldest first, so that its last one is what became of it."""
    if model is not BlockEvent:
        return rows
    live = Block.objects.filter(state__in=LIVE).values("pk")
    older = BlockEvent.objects.filter(
        cidr=OuterRef("cidr"), pgh_obj_id=OuterRef("pgh_obj_id"), pgh_id__lte=after
    )
    return rows.exclude(pgh_obj_id__in=live).exclude(Exists(older))
