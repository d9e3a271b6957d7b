"""Undo a committed import: remove what it created, and restore what it changed or released for its source.

Beside it: restore what was released because a source lacks it, when the run is undone.

The undo is refused as a whole if somebody else holds addresses in a pool that the import created, or got one that it
held. Descriptions, tags, owners and custom fields that were changed since stay as they are.

The run has a row of each object that was released. The undo validates these rows as an import would, and writes
those whose addresses nobody has by then; the others stay as they are, with the reason in their row.
"""

from collections.abc import Mapping

from django.db.models import Count, F

from pools.core.register_import.attributes import Definitions
from pools.models import Container, Pool, PoolCIDR, RegisterImport, RegisterRow, ReservedRange
from pools.models.attributes import ATTRIBUTES
from pools.models.imports import RegisterTarget, RowStatus
from pools.platform import advisory_locks, database, events
from pools.platform.imports import rows as stored_rows, states
from pools.platform.imports.lifecycle import Step
from pools.register import pools
from pools.register.allocator import window
from pools.register.imports import (
    attributes,
    commit,
    comparison,
    rows as import_rows,
    topology,
    vanished,
)
from pools.sql import statements


def locate_rows(register_import: RegisterImport) -> list[RegisterRow]:
    """Return the rows of released objects, each with the pool that its addresses would lie in now."""
    rows = list(register_import.rows.filter(status=RowStatus.RELEASED).order_by("number"))
    topology.resolve(rows)
    return rows


def restore(register_import: RegisterImport, step: Step) -> None:
    """Restore what was released of the run, in the transaction of its undo, and count what cannot be restored.

    The locks of `commit.write` are held.
    """
    rows = locate_rows(register_import)
    if not rows:
        return
    former = {row.number: row.object_id or 0 for row in rows}
    comparison.compare(register_import, rows)
    comparison.refuse(rows)
    import_rows.save(rows)
    commit.write_rows(register_import, step)
    values = {"numbers": [*former], "objects": [*former.values()]}
    database.fetch(_FOLLOW, {"import": register_import.pk, **values})
    kept = register_import.rows.filter(number__gte=rows[0].number)
    kept.filter(status=RowStatus.NEW).update(status=RowStatus.RELEASED)
    others = kept.exclude(status=RowStatus.RELEASED).order_by().values_list("status")
    for status, number in others.annotate(number=Count("*")):
        register_import.counts[status] += number
        register_import.counts["released"] -= number


_FOLLOW = statements.read("pools/follow_restored_objects")


def take_back(register_import: RegisterImport, *, author: events.Author, step: Step) -> None:
    """Undo an import; `step` is called with the number of rows done. Raises ImportInUse."""
    advisory_locks.lock_plan()
    definitions = attributes.definitions(lock=True)
    stored_rows.analyze()  # the draft had no written rows, and the statements join by them
    written = register_import.rows.filter(written=True)
    new = written.filter(status=RowStatus.NEW)
    own = new.filter(values__target=RegisterTarget.POOL).values("object_id")
    created = PoolCIDR.objects.filter(pk__in=own)
    touched = {*written.order_by().values_list("values__pool_cidr_id", flat=True).distinct()}
    touched |= {row.pool_cidr_id for row in locate_rows(register_import)}
    cidrs = PoolCIDR.objects.filter(pk__in=filter(None, touched)) | created
    window.lock(*cidrs.values_list("pool_id", flat=True))
    check_not_in_use(register_import)
    database.fetch(_RESTORE, {"import": register_import.pk})
    _revert_attributes(register_import, definitions)
    _release(register_import, author)
    step(written.count())
    _remove_pools(list(created.values_list("pk", "pool_id")))
    added = new.filter(values__target=RegisterTarget.CONTAINER).values("object_id")
    Container.objects.filter(pk__in=added).delete()
    vanished.forget(register_import)
    # The next run finds them again.
    register_import.rows.filter(status=RowStatus.VANISHED).delete()
    register_import.counts.pop(RowStatus.VANISHED, None)
    restore(register_import, step)


_RESTORE = statements.read("pools/restore_register_rows")
_DELETE_BLOCKS = statements.read("pools/delete_imported_blocks")


def _revert_attributes(
    register_import: RegisterImport, definitions: Mapping[str, Definitions]
) -> None:
    changed = register_import.rows.filter(written=True, status=RowStatus.CHANGED)
    for target, model in attributes.MODELS.items():
        rows = list(changed.filter(values__target=target, before__has_key="tags"))
        objects = model._default_manager.in_bulk([row.object_id for row in rows])
        for row in rows:
            made = objects.get(row.object_id)
            if made is not None and attributes.revert(made, row, definitions[target]):
                made.save(update_fields=ATTRIBUTES)


def _release(register_import: RegisterImport, author: events.Author) -> None:
    """Remove the blocks of pools that the import created; release the others, and end their reservations."""
    database.rows("SELECT set_config('ipam.forget', 'on', true)", [])
    database.fetch(_DELETE_BLOCKS, {"import": register_import.pk})
    database.rows("SELECT set_config('ipam.forget', '', true)", [])
    rows = register_import.rows.filter(written=True, status=RowStatus.NEW)
    rows = rows.filter(values__pool_cidr_id__gt=0)
    held = rows.filter(values__target=RegisterTarget.ADDRESS).values_list("object_id", flat=True)
    window.release_blocks([pk for pk in held if pk is not None])
    reserved = rows.filter(values__target=RegisterTarget.RESERVED).values("object_id")
    for row in ReservedRange.objects.filter(pk__in=reserved).select_related("pool_cidr__pool"):
        pools.unreserve(row.pk, author=author)


def _remove_pools(created: list[tuple[int, int]]) -> None:
    PoolCIDR.objects.filter(pk__in=[cidr_id for cidr_id, _ in created]).delete()
    pool_ids = {pool_id for _, pool_id in created}
    Pool.objects.filter(pk__in=pool_ids, cidrs=None).delete()
    Pool.objects.filter(pk__in=pool_ids).update(version=F("version") + 1)


def check_not_in_use(register_import: RegisterImport) -> None:
    """Raise ImportInUse with the first objects that somebody else has changed or uses."""
    with database.hash_joins_only(many=states.is_large(register_import)):
        used = database.rows(_IN_USE, {"import": register_import.pk}, prepare=False)
    states.check_unused([reason for (reason,) in used])


_IN_USE = statements.read("pools/register_rows_in_use")
