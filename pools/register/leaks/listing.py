"""Leaks with their blocks for lists, reports and exports, and the reason of each in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from django.db.models import QuerySet
from django.utils.translation import ngettext

from pools.models import Block, Leak
from pools.register.leaks import detection

CHUNK = 2000


def describe_observation(leak: Leak) -> str:
    """Return a sentence that says which observations missed the holder."""
    holder = f"{leak.holder_kind} {leak.holder_id}"
    count = leak.observations
    if leak.source == detection.TOOLING:
        return ngettext(
            "%(holder)s is missing from the last inventory report.",
            "%(holder)s is missing from the last %(count)d inventory reports.",
            count,
        ) % {"holder": holder, "count": count}
    return ngettext(
        "%(holder)s is missing from the last complete list of %(source)s.",
        "%(holder)s is missing from the last %(count)d complete lists of %(source)s.",
        count,
    ) % {"holder": holder, "source": leak.source, "count": count}


def load_blocks(leaks: Sequence[Leak]) -> list[Leak]:
    """Read the blocks of leaks with one query; leaks whose block is gone are left out."""
    block_rows = Block.objects.filter(pk__in={leak.block_id for leak in leaks})
    blocks = {block.pk: block for block in block_rows.select_related("pool__cluster")}
    loaded = [leak for leak in leaks if leak.block_id in blocks]
    for leak in loaded:
        leak.block = blocks[leak.block_id]
    return loaded


def iterate_leaks(rows: QuerySet[Leak]) -> Iterator[Leak]:
    """Yield all leaks of a queryset with their blocks, read in chunks."""
    leaks = rows.order_by("id").iterator(chunk_size=CHUNK)
    while chunk := list(islice(leaks, CHUNK)):
        yield from load_blocks(chunk)
