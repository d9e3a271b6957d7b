"""What happened, written by database triggers (django-pghistory), so that bulk and raw changes
are caught too. Rows are append-only; `Event` reads all of these tables as one log.

One sequence numbers the rows of all event tables: an event's id orders it among all others.
"""

from __future__ import annotations

from typing import Any

import pghistory
import pgtrigger
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Func, Value
from pghistory import trigger as pghistory_trigger

from pools.models.blocks import Block, BlockState
from pools.models.clusters import Cluster
from pools.models.connections import Connection
from pools.models.notices import WebhookTarget
from pools.models.pools import Category, Pool, PoolCIDR, ReservedRange

SEQUENCE = "pools_event_number"


def event_number_field() -> Any:
    next_number = Func(Value(SEQUENCE), function="nextval")
    return models.BigIntegerField(primary_key=True, db_default=next_number)


def create_event_model(model: type[models.Model], *trackers: Any, fields: list[str]) -> Any:
    return pghistory.create_event_model(
        model,
        *trackers,
        fields=fields,
        obj_field=pghistory.ObjForeignKey(related_name="+", db_index=False),
        context_field=pghistory.ContextJSONField(),
        context_id_field=None,  # type: ignore[arg-type]  # None leaves the field out
        append_only=True,
    )


def _lifecycle_event_model(model: type[models.Model], fields: list[str]) -> Any:
    return create_event_model(
        model,
        pghistory.InsertEvent("created"),
        pghistory.UpdateEvent("changed"),
        pghistory.DeleteEvent("deleted"),
        fields=fields,
    )


# What an update of a block means. One trigger tells them apart, because each one costs the hot path.
_MEANING = """CASE
    WHEN OLD.state <> 'held' AND NEW.state = 'held' THEN 'allocated'
    WHEN OLD.state = 'held' AND NEW.state <> 'held' THEN 'released'
    WHEN OLD.state = 'cooling' AND NEW.state = 'available' THEN 'cooldown_ended'
    ELSE 'changed' END"""


# As django-pghistory writes it for an event whose context is one column of JSON.
_CONTEXT = "COALESCE(NULLIF(CURRENT_SETTING('pghistory.context_metadata', TRUE), ''), NULL)::JSONB"

# A change that is no event: neither the state nor whom a held block belongs to is another.
_NO_EVENT = """IF OLD.state = NEW.state AND (NEW.state <> 'held'
    OR (OLD.holder_id, OLD.holder_kind, OLD.holder_uid, OLD.org, OLD.env)
     = (NEW.holder_id, NEW.holder_kind, NEW.holder_uid, NEW.org, NEW.env)) THEN
    RETURN NULL; END IF;"""


class _MeaningEvent(pghistory_trigger.Event):
    """An event whose label is worked out by the trigger, and whether there is one.

    A WHEN clause would say the latter too, but PostgreSQL reads its text anew for every statement.
    """

    def get_func(self, model: Any) -> pgtrigger.Func:
        func = super().get_func(model)  # type: ignore[no-untyped-call]
        labelled = func.func.replace(f"'{self.label}'", " ".join(_MEANING.split()))
        return pgtrigger.Func(f"{' '.join(_NO_EVENT.split())} {labelled}")


class _BatchEvent(pghistory_trigger.Event):
    """The events of all rows of a statement; what is the same for all is worked out once."""

    def get_func(self, model: Any) -> pgtrigger.Func:
        text = super().get_func(model).func  # type: ignore[no-untyped-call]
        for same in (_CONTEXT, "ipam_now()"):
            if same not in text:
                raise AssertionError(f"django-pghistory writes its trigger without {same}")
            text = text.replace(same, f"(SELECT {same})")
        return pgtrigger.Func(text)


def _register_trigger(
    event: type[pghistory_trigger.Event], tracker: Any, model: Any, level: Any
) -> None:
    pgtrigger.register(
        event(
            event_model=model,
            label=tracker.label,
            name=tracker.trigger_name,
            row=tracker.row,
            operation=tracker.operation,
            condition=tracker.condition if level is pghistory.Statement else None,
            level=level,
        )
    )(model.pgh_tracked_model)


class _BlockUpdate(pghistory.UpdateEvent):
    """Every change of a block's state, and of whom a held one belongs to."""

    def add_event_trigger(self, event_model: Any) -> None:
        _register_trigger(_MeaningEvent, self, event_model, pghistory.Row)


class _BlockInsert(pghistory.InsertEvent):
    """Only a batch inserts held blocks: one statement writes all their events."""

    def add_event_trigger(self, event_model: Any) -> None:
        _register_trigger(_BatchEvent, self, event_model, pghistory.Statement)


# An event model with a Meta of its own does not inherit the protection that pghistory adds.
APPEND_ONLY = pgtrigger.Protect(name="append_only", operation=pgtrigger.Update | pgtrigger.Delete)

_BLOCK = [
    "pool", "space", "category", "family", "cidr", "state", "withheld",
    "holder_kind", "holder_id", "holder_uid", "org", "env",
    "allocated_at", "released_at", "available_from",
]  # fmt: skip


_BlockEvent: Any = create_event_model(
    Block,
    _BlockInsert("allocated", condition=pgtrigger.Q(new__state=BlockState.HELD)),
    _BlockUpdate("updated"),
    pghistory.DeleteEvent("removed", condition=~pgtrigger.Q(old__state=BlockState.AVAILABLE)),
    fields=_BLOCK,
)


class BlockEvent(_BlockEvent):  # type: ignore[misc]  # made at run time
    """A block was allocated, released, …; the row's columns are those after the change."""

    pgh_id = event_number_field()

    class Meta:
        triggers = [APPEND_ONLY]
        indexes = [
            models.Index(fields=["cidr", "pgh_id"], name="block_event_cidr"),
            models.Index(fields=["holder_id", "pgh_id"], name="block_event_holder"),
            models.Index(fields=["pool", "pgh_id"], name="block_event_pool"),
            BrinIndex(fields=["pgh_created_at"], name="block_event_time"),
        ]


_FailureEvent: Any = create_event_model(Pool, pghistory.ManualEvent("allocation_failed"), fields=[])


class FailureEvent(_FailureEvent):  # type: ignore[misc]  # made at run time
    """An allocation was refused because the pool had no block left; nothing else was changed."""

    pgh_id = event_number_field()
    category = models.CharField(max_length=8, choices=Category)
    holder_kind = models.CharField(max_length=63)
    holder_id = models.CharField(max_length=253)
    org = models.CharField(max_length=253, blank=True, default="")
    env = models.CharField(max_length=253, blank=True, default="")
    code = models.CharField(max_length=63)
    message = models.CharField(max_length=500)

    class Meta:
        triggers = [APPEND_ONLY]
        indexes = [models.Index(fields=["holder_id", "pgh_id"], name="failure_event_holder")]


_ClusterEvent: Any = _lifecycle_event_model(
    Cluster,
    [
        "name",
        "cluster_prefix",
        "instance_gateway",
        "instance_mtu",
        "instance_dns",
        "webhook_key_made_at",
    ],
)


class ClusterEvent(_ClusterEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


_ConnectionEvent: Any = _lifecycle_event_model(
    Connection,
    ["cluster", "server", "mode", "managed_resources", "paused", "in_cluster", "identity"],
)


class ConnectionEvent(_ConnectionEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


_PoolEvent: Any = _lifecycle_event_model(
    Pool,
    [
        "cluster",
        "name",
        "category",
        "mask_size_v4",
        "mask_size_v6",
        "cooldown_seconds",
        "allow_first_ip",
        "allow_last_ip",
        "description",
        "orphaned_at",
    ],
)


class PoolEvent(_PoolEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


_PoolCIDREvent: Any = _lifecycle_event_model(
    PoolCIDR, ["pool", "cidr", "position", "orphaned_at", "pending"]
)


class PoolCIDREvent(_PoolCIDREvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


_ReservedRangeEvent: Any = _lifecycle_event_model(
    ReservedRange, ["pool", "pool_cidr", "first", "last", "reason"]
)


class ReservedRangeEvent(_ReservedRangeEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


# Neither its secret nor its URL, which may hold one, is in an event: only that they are others. What
# is written with each try of a delivery is none.
_WebhookTargetEvent: Any = create_event_model(
    WebhookTarget,
    pghistory.InsertEvent("created"),
    pghistory.UpdateEvent("changed", condition=pgtrigger.AnyChange("name", "codes", "enabled")),
    pghistory.UpdateEvent("url_changed", condition=pgtrigger.AnyChange("url")),
    pghistory.UpdateEvent("ca_changed", condition=pgtrigger.AnyChange("ca")),
    pghistory.UpdateEvent(
        "secret_replaced",
        # The first one is made with the target.
        condition=pgtrigger.Q(old__secret_made_at__df=pgtrigger.F("new__secret_made_at"))
        & ~pgtrigger.Q(old__sealed=""),
    ),
    pghistory.DeleteEvent("deleted"),
    fields=["name", "host", "codes", "enabled", "secret_made_at"],
)


class WebhookTargetEvent(_WebhookTargetEvent):  # type: ignore[misc]  # made at run time
    pgh_id = event_number_field()


class Event(models.Model):
    """All event tables as one log, newest id last (a view: pools/sql/event_log.sql)."""

    id = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    type = models.TextField()
    table = models.TextField()  # the event table, for the snapshot before and after
    object_id = models.BigIntegerField()
    cluster_id = models.BigIntegerField(null=True)
    pool_id = models.BigIntegerField(null=True)
    cidr = models.TextField()
    holder_kind = models.TextField()
    holder_id = models.TextField()
    org = models.TextField()
    env = models.TextField()
    actor = models.TextField()
    request_id = models.TextField()
    reason = models.TextField()
    message = models.TextField()

    class Meta:
        managed = False
        db_table = "pools_event_log"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.type} {self.cidr or self.object_id}"
