"""Recovery mode: after a restore, nothing is allocated until every connected cluster was listed once.

The restored register lacks allocations since the backup, and would allocate the same blocks again. So a
trigger (pools/sql/recovery.sql, disabled at other times) refuses every new holder, while full syncs record
the blocks that clusters use. Recovery mode ends after one successful sync of every cluster. Without a
connected cluster, or with an unreachable one, an administrator ends it.
"""

from datetime import timedelta

from django.db import DatabaseError, connection, transaction

from pools.core import errors
from pools.models import Now, Recovery
from pools.platform import database, events

_PATIENCE = "10s"  # lock timeout at the begin, for running allocations
_SHORT = "1s"  # lock timeout at the end, which is retried


def current_recovery() -> Recovery | None:
    """Return the recovery in progress, or None."""
    return Recovery.objects.filter(ended_at=None).first()


def clusters_to_list() -> list[str]:
    """Return the names of the connected clusters that are still to be listed; [] without a recovery."""
    return [name for (name,) in database.rows("SELECT ipam_recovery_waits_for()", [])]


def may_allocate() -> bool:
    """Return True if this transaction of a sync may allocate blocks; end its permission to record.

    `leases.transaction_under_lease` lets the trigger accept recorded blocks. An allocation is not a
    record, so this function withdraws that permission.
    """
    ((_, may),) = database.rows(
        "SELECT set_config('ipam.absorbing', 'off', true),"
        " NOT EXISTS (SELECT FROM pools_recovery WHERE ended_at IS NULL)",
        [],
    )
    return bool(may)


def begin(*, author: events.Author, lost: timedelta = timedelta()) -> Recovery:
    """Start recovery mode; `author` has the reason, `lost` is the time since the backup.

    Waits for running allocations. Cooldowns keep the remaining time that they had in the backup, because
    a block whose cooldown ended meanwhile may have been allocated and released since. Raises Conflict if
    a recovery is in progress, InvalidInput without a reason.
    """
    if not author.reason:
        raise errors.InvalidInput.for_field("reason", "required", "A recovery needs a reason.")
    return database.with_retries(lambda: _begin(author, lost))


def _begin(author: events.Author, lost: timedelta) -> Recovery:
    with events.recorded_by(author):
        _set_lock_timeout(_PATIENCE)
        if not database.call(BEGIN, [author.reason[:500], author.actor, author.as_context(), lost]):
            raise errors.Conflict("Recovery mode is already active.")
        return Recovery.objects.get(ended_at=None)


BEGIN = "SELECT ipam_recovery_begin(%s::text, %s::text, %s::text, %s::interval)"


def end(*, author: events.Author, force: bool = False) -> Recovery:
    """End recovery mode.

    Raises Conflict without a recovery, or while clusters are still to be listed. `force` ends it all the
    same; InvalidInput without a reason.
    """
    if force and not author.reason:
        raise errors.InvalidInput.for_field("reason", "required", "A forced end needs a reason.")
    with events.recorded_by(author):
        row = Recovery.objects.select_for_update().filter(ended_at=None).first()
        if row is None:
            raise errors.Conflict("Recovery mode is not active.")
        waiting_clusters = clusters_to_list()
        if waiting_clusters and not force:
            raise errors.Conflict(f"Clusters not yet listed: {', '.join(waiting_clusters[:20])}.")
        _set_lock_timeout(_SHORT)
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE pools_block DISABLE TRIGGER pools_block_recovers")
        row.ended_at, row.ended_by = Now(), author.actor
        row.save(update_fields=["ended_at", "ended_by"])
        # Waiting nodes, claims and requests are served at once.
        database.rows("UPDATE pools_connection SET due_at = ipam_clock() RETURNING id", [])
        database.rows(
            "UPDATE pools_allocationrequest SET next_try_at = ipam_now()"
            " WHERE state = 'pending' RETURNING id",
            [],
        )
        events.record_connection_event(None, "recovery_ended", author=author)
    row.refresh_from_db()
    return row


def end_when_listed() -> bool:
    """End the recovery if every connected cluster was listed; return True if it ended. Does not wait."""
    ((over,),) = database.rows(_CAN_END, [])
    if not over:
        return False
    try:
        with transaction.atomic():
            end(author=events.WORKER)
    except (errors.Conflict, DatabaseError):
        return False  # another process ends it, or holds locks: the next sync retries
    return True


_CAN_END = """
    SELECT EXISTS (SELECT FROM pools_recovery WHERE ended_at IS NULL)
      AND EXISTS (SELECT FROM pools_connection WHERE NOT paused)
      AND NOT EXISTS (SELECT ipam_recovery_waits_for())
"""


def _set_lock_timeout(patience: str) -> None:
    """Limit the wait for transactions that write blocks; later transactions wait behind this one."""
    database.rows("SELECT set_config('lock_timeout', %s, true)", [patience])


def time_since_last_write() -> timedelta:
    """Return the time since the last write of the restored register; call it before any write.

    The backup is not older than that; the register may have been idle before it.
    """
    lost: timedelta | None = database.call("SELECT ipam_lost_since_backup()", [])
    return lost or timedelta()


def allow_recording() -> None:
    """Let this transaction record blocks during a recovery, for holders that use them already."""
    database.rows("SELECT set_config('ipam.absorbing', 'on', true)", [])
