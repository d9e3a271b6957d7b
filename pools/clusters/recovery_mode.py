"""Recovery mode: after a restore nothing is allocated until every connected cluster was listed once.

The restored register knows less than the clusters and its callers: what was handed out since the backup
would be handed out again. So no block gets a new holder (a trigger of pools/sql/recovery.sql, which no
allocation runs at other times), while full passes record what clusters show as in use. When each of them
succeeded once it ends by itself; with no cluster connected, or one that stays away, a person ends it.
"""

from __future__ import annotations

from datetime import timedelta

from django.db import DatabaseError, connection, transaction

from pools.core import errors
from pools.models import Recovery
from pools.models.fields import Now
from pools.platform import database, events

_PATIENCE = "10s"  # for allocations that are being made when it begins
_SHORT = "1s"  # nobody queues behind its end: it is tried again


def current() -> Recovery | None:
    """The recovery that goes on."""
    return Recovery.objects.filter(ended_at=None).first()


def waits_for() -> list[str]:
    """The connected clusters that are still to be listed, by name; [] when none recovers."""
    return [name for (name,) in database.rows("SELECT ipam_recovery_waits_for()", [])]


def may_grant() -> bool:
    """Whether this transaction of a pass may hand out blocks; from now on it records none either.

    A pass says in `leases.holding` that it records what is in use, which the trigger lets through: what
    is handed out is no such thing.
    """
    ((_, may),) = database.rows(
        "SELECT set_config('ipam.absorbing', 'off', true),"
        " NOT EXISTS (SELECT FROM pools_recovery WHERE ended_at IS NULL)",
        [],
    )
    return bool(may)


def begin(*, author: events.Author, lost: timedelta = timedelta()) -> Recovery:
    """Allocate nothing from now on; `by` has the reason, `lost` is the time since the backup.

    Allocations that are being made end first. Cooldowns go on from where the backup left them: what
    was left of them then is left now, because a block whose time was over meanwhile may have been
    handed out and given back since. Raises Conflict while one goes on, InvalidInput without a reason.
    """
    if not author.reason:
        raise errors.InvalidInput.for_field("reason", "required", "A recovery needs a reason.")
    return database.with_retries(lambda: _begin(author, lost))


def _begin(author: events.Author, lost: timedelta) -> Recovery:
    with events.recorded(author):
        _wait_at_most(_PATIENCE)
        if not database.call(BEGIN, [author.reason[:500], author.actor, author.as_context(), lost]):
            raise errors.Conflict("The register is recovering already.")
        return Recovery.objects.get(ended_at=None)


BEGIN = "SELECT ipam_recovery_begin(%s::text, %s::text, %s::text, %s::interval)"


def end(*, author: events.Author, force: bool = False) -> Recovery:
    """Allocate again. Raises Conflict while clusters are still to be listed, unless forced with a
    reason, or when none goes on."""
    if force and not author.reason:
        raise errors.InvalidInput.for_field("reason", "required", "A forced end needs a reason.")
    with events.recorded(author):
        row = Recovery.objects.select_for_update().filter(ended_at=None).first()
        if row is None:
            raise errors.Conflict("The register is not recovering.")
        waiting_clusters = waits_for()
        if waiting_clusters and not force:
            raise errors.Conflict(f"Still to be listed: {', '.join(waiting_clusters[:20])}.")
        _wait_at_most(_SHORT)
        with connection.cursor() as cursor:
            cursor.execute("ALTER TABLE pools_block DISABLE TRIGGER pools_block_recovers")
        row.ended_at, row.ended_by = Now(), author.actor
        row.save(update_fields=["ended_at", "ended_by"])
        # Nodes, claims and requests that waited are served at once.
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
    """End the recovery if every connected cluster was listed; whether it did. Waits for nobody."""
    ((over,),) = database.rows(_OVER, [])
    if not over:
        return False
    try:
        with transaction.atomic():
            end(author=events.WORKER)
    except (errors.Conflict, DatabaseError):
        return False  # somebody else ends it, or writers are busy: it is looked at again
    return True


_OVER = """
    SELECT EXISTS (SELECT FROM pools_recovery WHERE ended_at IS NULL)
      AND EXISTS (SELECT FROM pools_connection WHERE NOT paused)
      AND NOT EXISTS (SELECT ipam_recovery_waits_for())
"""


def _wait_at_most(patience: str) -> None:
    """For transactions that write blocks; those that come later wait behind us."""
    database.rows("SELECT set_config('lock_timeout', %s, true)", [patience])


def lost_since_backup() -> timedelta:
    """How long ago the restored register wrote anything; ask before anything writes to it.

    The backup is not older than that; the register may have been idle before it.
    """
    lost: timedelta | None = database.call("SELECT ipam_lost_since_backup()", [])
    return lost or timedelta()


def recording() -> None:
    """In this transaction blocks are handed out all the same: to those who have them already."""
    database.rows("SELECT set_config('ipam.absorbing', 'on', true)", [])
