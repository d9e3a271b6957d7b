"""What a mirror brought and its NetBox has no more: a row of the run for each, which a person confirms.

Rule `unknown-is-not-absent`: a reading is complete, or the run has failed before it comes here; an object whose row
cannot be parsed is still there. Only the newest run of a source has such rows. A confirmed object is released, an
address into the cooldown of its pool; one that is kept belongs to the mirror no longer. What only followed from others
(parts of prefixes, ranges for rows that were left out) goes at once, and a reserved range that has grown or shrunk in
the source is replaced: it is there still.
"""

from collections.abc import Collection

from django.db.models import QuerySet

from pools import models
from pools.core import errors
from pools.models.imports import RegisterTarget, RowStatus
from pools.platform import advisory_locks, database, events
from pools.register import pool_cidrs, pools
from pools.register.allocator import window
from pools.sql import statements


def add_rows(register_import: models.RegisterImport, *, author: events.Author) -> None:
    """Add a row for each object that the source lacks, in the transaction of the commit, and release what is derived.

    What the mirror had brought and is another's now is forgotten.
    """
    source = {"import": register_import.pk, "source": register_import.netbox_source_id}
    with database.hash_joins_only():
        lacking = database.rows(_VANISHED, source, prepare=False)
    present = [record for record in lacking if record[2] is not None]
    others = [record_id for record_id, _target, object_id, _ in lacking if object_id is None]
    models.RegisterRecord.objects.filter(pk__in=others).delete()
    values = {
        "import": register_import.pk,
        "records": [record_id for record_id, _target, _object_id, _ in present],
        "objects": [object_id for _record_id, _target, object_id, _ in present],
    }
    numbers = sorted(number for (number,) in database.rows(_ADD_ROWS, values, prepare=False))
    added = zip(numbers, present, strict=True)
    if replaced := [number for number, (*_, is_derived) in added if is_derived]:
        release(register_import, replaced, author=author)


_VANISHED = statements.read("pools/vanished_register_records")
_ADD_ROWS = statements.read("pools/add_vanished_rows")


def forget_earlier_runs(register_import: models.RegisterImport) -> None:
    """Delete the unconfirmed rows of earlier runs: this one knows better.

    It locks these imports, which come before the address plan in the order of locks: a confirmation and an undo have
    that of their import when they take the plan.
    """
    runs = models.RegisterImport.objects.filter(
        netbox_source=register_import.netbox_source_id, counts__has_key=RowStatus.VANISHED
    )
    for run in runs.exclude(pk=register_import.pk).order_by("pk").select_for_update():
        run.rows.filter(status=RowStatus.VANISHED).delete()
        del run.counts[RowStatus.VANISHED]
        run.save(update_fields=["counts"])


def chosen_rows(
    register_import: models.RegisterImport, numbers: Collection[int] | None
) -> QuerySet[models.RegisterRow]:
    """Return the unconfirmed rows with these numbers, or all. Raises NotFound."""
    rows: QuerySet[models.RegisterRow] = register_import.rows.filter(status=RowStatus.VANISHED)
    if numbers is None:
        return rows
    rows = rows.filter(number__in=numbers)
    if rows.count() != len(set(numbers)):
        raise errors.NotFound("The import has no such row that its source lacks.")
    return rows


def release(
    register_import: models.RegisterImport, numbers: Collection[int], *, author: events.Author
) -> None:
    """Release the objects of these rows, as far as they are still what the mirror brought; the caller has the lock.

    The rows stay, and the undo of the run restores the objects by them. A pool that is in use stays unconfirmed.
    """
    advisory_locks.lock_plan()
    rows = list(register_import.rows.filter(number__in=numbers).order_by("number"))
    ids: dict[str, list[int]] = {target: [] for target in RegisterTarget.values}
    for row in rows:
        ids[row.target].append(row.object_id or 0)
    touched = (
        models.Block.objects.filter(pk__in=ids[RegisterTarget.ADDRESS]),
        models.ReservedRange.objects.filter(pk__in=ids[RegisterTarget.RESERVED]),
        models.PoolCIDR.objects.filter(pk__in=ids[RegisterTarget.POOL]),
    )
    window.lock(*(pk for objects in touched for pk in objects.values_list("pool", flat=True)))
    holders = {row.object_id: row.holder_id for row in rows if row.target == RegisterTarget.ADDRESS}
    held = models.Block.objects.filter(pk__in=ids[RegisterTarget.ADDRESS], state="held")
    window.release_blocks(
        [pk for pk, holder in held.values_list("pk", "holder_id") if holders[pk] == holder]
    )
    ranges = models.ReservedRange.objects.filter(pk__in=ids[RegisterTarget.RESERVED])
    for pk in ranges.values_list("pk", flat=True):
        pools.unreserve(pk, author=author)
    in_use = set(_remove_cidrs(ids[RegisterTarget.POOL], author))
    models.Container.objects.filter(pk__in=ids[RegisterTarget.CONTAINER]).delete()
    released = [
        row.number
        for row in rows
        if not (row.target == RegisterTarget.POOL and row.object_id in in_use)
    ]
    forget(register_import, released)
    register_import.rows.filter(number__in=released).update(status=RowStatus.RELEASED)


def forget(register_import: models.RegisterImport, numbers: Collection[int] | None = None) -> None:
    """Delete what the import says about the objects of these rows, or of all that it created: they are its no longer."""
    values = {"import": register_import.pk, "numbers": None if numbers is None else list(numbers)}
    database.fetch(_FORGET, values)


_FORGET = statements.read("pools/forget_register_records")


def _remove_cidrs(ids: list[int], author: events.Author) -> list[int]:
    """Remove CIDRs without blocks in use and reserved ranges, and pools without CIDRs; return the ids of the others."""
    in_use = []
    for cidr in models.PoolCIDR.objects.filter(pk__in=ids).select_related("pool__cluster"):
        if pool_cidrs.blocks_in_use(cidr).exists() or cidr.reserved_ranges.exists():
            in_use.append(cidr.pk)
            continue
        pools.remove_cidr(cidr.pk, author=author)
        if not models.PoolCIDR.objects.filter(pool=cidr.pool_id).exists():
            pools.delete(cidr.pool_id, author=author)
    return in_use
