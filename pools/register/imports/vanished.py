"""What a mirror brought and its NetBox has no more: addresses are released into the cooldown of their pool.

Rule `unknown-is-not-absent`: a reading is complete, or the run has failed before it comes here; an object whose row
cannot be parsed is still there. A run that would release most of what the mirror has is refused.
"""

from __future__ import annotations

from pools.core import errors
from pools.models import Container, PoolCIDR, RegisterImport, RegisterRecord, ReservedRange
from pools.models.imports import RegisterTarget, RowStatus
from pools.platform import database, events
from pools.register import pool_cidrs, pools
from pools.register.allocator import window
from pools.sql import statements

_FEW = 10  # vanished objects that are always released
_SHARE = 0.5  # of a mirror's objects, of which one run releases no more


class MirrorShrunk(errors.Conflict):
    """NetBox lacks most of what the mirror has; perhaps the token may not see it any more."""

    code = "mirror_shrunk"


def release_vanished(register_import: RegisterImport, *, author: events.Author) -> int:
    """Release what has vanished, in the transaction of the commit; return the number of objects.

    The import keeps a row of each, by which its undo restores it. A pool that is in use stays. Raises MirrorShrunk.
    """
    source_id = register_import.netbox_source_id
    values = {"import": register_import.pk, "source": source_id}
    with database.hash_joins_only():
        rows = database.rows(_VANISHED, values, prepare=False)
    total = RegisterRecord.objects.filter(source_id=source_id).count()
    if len(rows) > _FEW and len(rows) > total * _SHARE:
        raise MirrorShrunk(
            f"NetBox lacks {len(rows)} of the {total} objects that this mirror has; nothing was changed."
            " Check what its token may see."
        )
    present = [row for row in rows if row[2] is not None]
    ids: dict[str, list[int]] = {target: [] for target in RegisterTarget.values}
    for _record, target, object_id in present:
        ids[target].append(object_id)
    database.fetch(
        _KEEP_ROWS,
        {
            "import": register_import.pk,
            "records": [record for record, _target, _object_id in present],
            "objects": [object_id for _record, _target, object_id in present],
        },
    )
    window.release_blocks(ids[RegisterTarget.ADDRESS])
    for pk in ReservedRange.objects.filter(pk__in=ids[RegisterTarget.RESERVED]).values_list(
        "pk", flat=True
    ):
        pools.unreserve(pk, author=author)
    kept = set(_remove_cidrs(ids[RegisterTarget.POOL], author))
    released = register_import.rows.filter(status=RowStatus.RELEASED)
    released.filter(target=RegisterTarget.POOL, object_id__in=kept).delete()
    Container.objects.filter(pk__in=ids[RegisterTarget.CONTAINER]).delete()
    gone = [
        record
        for record, target, object_id in rows
        if not (target == RegisterTarget.POOL and object_id in kept)
    ]
    RegisterRecord.objects.filter(pk__in=gone).delete()
    return int(released.count())


_VANISHED = statements.read("pools/vanished_register_records")
_KEEP_ROWS = statements.read("pools/keep_released_rows")


def _remove_cidrs(ids: list[int], author: events.Author) -> list[int]:
    """Remove CIDRs without blocks in use and reserved ranges, and pools without CIDRs; return the ids of the others."""
    kept = []
    for cidr in PoolCIDR.objects.filter(pk__in=ids).select_related("pool__cluster"):
        if pool_cidrs.blocks_in_use(cidr).exists() or cidr.reserved_ranges.exists():
            kept.append(cidr.pk)
            continue
        pools.remove_cidr(cidr.pk, author=author)
        if not PoolCIDR.objects.filter(pool=cidr.pool_id).exists():
            pools.delete(cidr.pool_id, author=author)
    return kept
