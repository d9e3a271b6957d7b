"""Event tables, written by database triggers (django-pghistory), so that bulk and raw changes are recorded.

Rows are append-only. `Event` reads all event tables as one log. One sequence numbers the rows of all
event tables, so that the ids order all events.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import pghistory
import pgtrigger
from django.contrib.postgres.indexes import BrinIndex
from django.db import models
from django.db.models import Func, Value
from django.db.models.fields.json import KeyTransform
from django.utils.translation import gettext_lazy as _
from pghistory import trigger as pghistory_trigger

from pools.models.accounts import DirectoryAccount, FactorOwner, TokenOwner
from pools.models.alerts import WebhookTarget
from pools.models.attributes import ATTRIBUTES, CustomField
from pools.models.blocks import Block, BlockState, DNSName
from pools.models.clusters import Cluster, Connection
from pools.models.imports import Import, NetBoxSource
from pools.models.journal import JournalEntry
from pools.models.pools import Category, Container, Pool, PoolCIDR, ReservedRange
from pools.models.requests import Environment

SEQUENCE = "pools_event_number"


def event_number_field() -> Any:
    next_number = Func(Value(SEQUENCE), function="nextval")
    return models.BigIntegerField(primary_key=True, db_default=next_number)


def create_event_model(
    model: type[models.Model],
    *trackers: Any,
    fields: list[str],
    name: str = "",
    columns: Mapping[str, models.Field[Any, Any]] | None = None,
    indexes: Sequence[models.Index] = (),
) -> Any:
    """Create the event table of a model: append-only, numbered by the sequence, with the context as JSON."""
    return pghistory.create_event_model(
        model,
        *trackers,
        fields=fields,
        obj_field=pghistory.ObjForeignKey(related_name="+", db_index=False),
        context_field=pghistory.ContextJSONField(),
        context_id_field=None,  # type: ignore[arg-type]  # None leaves the field out
        append_only=True,
        model_name=name or f"{model.__name__}Event",
        attrs={"pgh_id": event_number_field(), **(columns or {})},
        meta={"indexes": list(indexes)} if indexes else None,
        abstract=False,
    )


def search_indexes(table: str, *columns: str) -> list[models.Index]:
    """Return the indexes of a large event table for searches by its author and by columns that are often empty."""
    actor = KeyTransform("actor", "pgh_context")
    return [
        models.Index(actor, models.F("pgh_id"), name=f"{table}_actor"),
        *(
            models.Index(
                fields=[column, "pgh_id"],
                condition=~models.Q(**{column: ""}),
                name=f"{table}_{column}",
            )
            for column in columns
        ),
    ]


def _lifecycle_event_model(model: type[models.Model], fields: list[str]) -> Any:
    return create_event_model(
        model,
        pghistory.InsertEvent("created"),
        pghistory.UpdateEvent("changed"),
        pghistory.DeleteEvent("deleted"),
        fields=fields,
    )


# The label of an update of a block. One trigger distinguishes them, because each trigger slows the hot path.
_MEANING = """CASE
    WHEN OLD.state <> 'held' AND NEW.state = 'held' THEN 'allocated'
    WHEN OLD.state = 'held' AND NEW.state <> 'held' THEN 'released'
    WHEN OLD.state = 'cooling' AND NEW.state = 'available' THEN 'cooldown_ended'
    ELSE 'changed' END"""


# The expression that django-pghistory generates for a context in one JSON column.
_CONTEXT = "COALESCE(NULLIF(CURRENT_SETTING('pghistory.context_metadata', TRUE), ''), NULL)::JSONB"

# An update without an event: neither the state nor the holder of a held block has changed.
_NO_EVENT = """IF OLD.state = NEW.state AND (NEW.state <> 'held'
    OR (OLD.holder_id, OLD.holder_kind, OLD.holder_uid, OLD.org, OLD.env)
     = (NEW.holder_id, NEW.holder_kind, NEW.holder_uid, NEW.org, NEW.env)) THEN
    RETURN NULL; END IF;"""


class _MeaningEvent(pghistory_trigger.Event):
    """A trigger that decides whether there is an event and computes its label.

    A WHEN clause could decide the former, but PostgreSQL parses its text anew for every statement.
    """

    def get_func(self, model: Any) -> pgtrigger.Func:
        func = super().get_func(model)  # type: ignore[no-untyped-call]
        labelled = func.func.replace(f"'{self.label}'", " ".join(_MEANING.split()))
        return pgtrigger.Func(f"{' '.join(_NO_EVENT.split())} {labelled}")


class _BatchEvent(pghistory_trigger.Event):
    """A trigger that writes the events of all rows of a statement and computes common values once."""

    def get_func(self, model: Any) -> pgtrigger.Func:
        text = super().get_func(model).func  # type: ignore[no-untyped-call]
        for expression in (_CONTEXT, "ipam_now()"):
            if expression not in text:
                raise AssertionError(f"django-pghistory's trigger does not contain {expression}")
            text = text.replace(expression, f"(SELECT {expression})")
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
    """Tracks every change of a block's state and of the holder of a held block."""

    def add_event_trigger(self, event_model: Any) -> None:
        _register_trigger(_MeaningEvent, self, event_model, pghistory.Row)


class _BlockInsert(pghistory.InsertEvent):
    """Tracks inserted held blocks, which only batches insert: one statement writes all their events."""

    def add_event_trigger(self, event_model: Any) -> None:
        _register_trigger(_BatchEvent, self, event_model, pghistory.Statement)


_BLOCK = [
    "pool",
    "space",
    "category",
    "family",
    "cidr",
    "state",
    "withheld",
    "holder_kind",
    "holder_id",
    "holder_uid",
    "org",
    "env",
    "allocated_at",
    "released_at",
    "available_from",
]


# A block was allocated, released, …; the columns are those of the block after the change.
BlockEvent = create_event_model(
    Block,
    _BlockInsert("allocated", condition=pgtrigger.Q(new__state=BlockState.HELD)),
    _BlockUpdate("updated"),
    pghistory.DeleteEvent("removed", condition=~pgtrigger.Q(old__state=BlockState.AVAILABLE)),
    fields=_BLOCK,
    indexes=[
        models.Index(fields=["cidr", "pgh_id"], name="block_event_cidr"),
        models.Index(fields=["holder_id", "pgh_id"], name="block_event_holder"),
        models.Index(fields=["pool", "pgh_id"], name="block_event_pool"),
        BrinIndex(fields=["pgh_created_at"], name="block_event_time"),
        *search_indexes("block_event", "org", "env", "holder_uid"),
    ],
)

# An allocation was refused because the pool had no available block; nothing else was changed.
FailureEvent = create_event_model(
    Pool,
    pghistory.ManualEvent("allocation_failed"),
    fields=[],
    name="FailureEvent",
    columns={
        "category": models.CharField(max_length=8, choices=Category),
        "holder_kind": models.CharField(max_length=63),
        "holder_id": models.CharField(max_length=253),
        "org": models.CharField(max_length=253, blank=True, default=""),
        "env": models.CharField(max_length=253, blank=True, default=""),
        "code": models.CharField(max_length=63),
        "message": models.CharField(max_length=500),
    },
    indexes=[
        models.Index(fields=["holder_id", "pgh_id"], name="failure_event_holder"),
        *search_indexes("failure_event", "org", "env"),
    ],
)

ClusterEvent = _lifecycle_event_model(
    Cluster,
    [
        "name",
        "cluster_prefix",
        "instance_gateway",
        "instance_mtu",
        "instance_dns",
        "description",
        "webhook_key_made_at",
        *ATTRIBUTES,
    ],
)


ConnectionEvent = _lifecycle_event_model(
    Connection,
    ["cluster", "server", "mode", "managed_resources", "paused", "in_cluster", "identity"],
)


PoolEvent = _lifecycle_event_model(
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
        "dns_pattern",
        *ATTRIBUTES,
    ],
)


PoolCIDREvent = _lifecycle_event_model(
    PoolCIDR, ["pool", "cidr", "position", "orphaned_at", "pending", *ATTRIBUTES]
)


ReservedRangeEvent = _lifecycle_event_model(
    ReservedRange, ["pool", "pool_cidr", "first", "last", "reason"]
)


ContainerEvent = _lifecycle_event_model(
    Container, ["space", "cidr", "name", "description", *ATTRIBUTES]
)


DNSNameEvent = _lifecycle_event_model(
    DNSName, ["block_id", "pool", "cidr", "holder_kind", "holder_id", "name"]
)


CustomFieldEvent = _lifecycle_event_model(
    CustomField, ["name", "label", "type", "choices", "object_types", "required", "description"]
)


# An environment that appears with an allocation has the event of its block, and none of its own.
EnvironmentEvent = create_event_model(
    Environment,
    pghistory.InsertEvent("created", condition=pgtrigger.Condition("NEW.declared_at IS NOT NULL")),
    pghistory.UpdateEvent("changed"),
    pghistory.DeleteEvent("deleted"),
    fields=["cluster", "org", "env", "description", "declared_at"],
    indexes=search_indexes("environment_event", "org", "env"),
)


JournalEntryEvent = _lifecycle_event_model(
    JournalEntry, ["cluster", "content_type", "object_id", "kind", "text", "author"]
)


DirectoryAccountEvent = _lifecycle_event_model(
    DirectoryAccount, ["user", "source", "username", "roles", "refusal", "refused_at"]
)


# Events contain neither the token of a source nor its certificates, but only that it has changed.
NetBoxSourceEvent = create_event_model(
    NetBoxSource,
    pghistory.InsertEvent("created"),
    pghistory.UpdateEvent(
        "changed",
        condition=pgtrigger.AnyChange(
            "name",
            "url",
            "ca",
            "cluster",
            "mapping",
            "holder_kind",
            "cooldown_seconds",
            "every_minutes",
        ),
    ),
    # The first token is sealed with the id of the new row.
    pghistory.UpdateEvent(
        "token_replaced",
        condition=pgtrigger.Q(old__sealed__df=pgtrigger.F("new__sealed"))
        & ~pgtrigger.Q(old__sealed=""),
    ),
    pghistory.DeleteEvent("deleted"),
    fields=["name", "url", "cluster", "every_minutes"],
)


# One event for each outcome of an import; its rows hold the details.
ImportEvent = create_event_model(
    Import,
    pghistory.InsertEvent("created"),
    pghistory.UpdateEvent(
        "changed",
        condition=pgtrigger.Q(
            old__status__df=pgtrigger.F("new__status"),
            new__status__in=["drafted", "committed", "undone", "cancelled", "failed"],
        ),
    ),
    fields=["kind", "cluster", "format", "file_name", "status", "counts"],
    indexes=[models.Index(fields=["pgh_obj", "pgh_id"], name="import_event_object")],
)


# A trigger on the authenticators of django-allauth writes these events (pools/sql/factor_events.sql). They name the
# owner and the passkey, and contain no secret.
FactorEvent = create_event_model(
    FactorOwner,
    pghistory.ManualEvent("created"),
    pghistory.ManualEvent("changed"),
    pghistory.ManualEvent("used"),
    pghistory.ManualEvent("counter_regressed"),
    pghistory.ManualEvent("deleted"),
    fields=[],
    name="FactorEvent",
    columns={
        "owner": models.CharField(max_length=150),
        "kind": models.CharField(max_length=20),
        "name": models.CharField(max_length=100),
    },
)


# A trigger on the tokens of django-rest-knox writes these events (pools/sql/token_events.sql). They name the owner,
# and contain neither the token nor its digest.
TokenEvent = create_event_model(
    TokenOwner,
    pghistory.ManualEvent("created"),
    pghistory.ManualEvent("changed"),
    pghistory.ManualEvent("revoked"),
    fields=[],
    name="TokenEvent",
    columns={
        "owner": models.CharField(max_length=150),
        "expiry": models.DateTimeField(null=True),
    },
)


# Events contain neither the secret nor the URL of a target, which may contain a secret, but only that
# they have changed. The columns that each delivery attempt writes cause no event.
_TARGET = [
    "name",
    "codes",
    "enabled",
    "alerts",
    "least_level",
    "digest",
    "event_types",
    "clusters",
    "event_pools",
]
WebhookTargetEvent = create_event_model(
    WebhookTarget,
    pghistory.InsertEvent("created"),
    pghistory.UpdateEvent(
        "changed",
        condition=pgtrigger.AnyChange(*_TARGET),
    ),
    pghistory.UpdateEvent("url_changed", condition=pgtrigger.AnyChange("url")),
    pghistory.UpdateEvent("ca_changed", condition=pgtrigger.AnyChange("ca")),
    pghistory.UpdateEvent(
        "secret_replaced",
        # The first secret is created with the target.
        condition=pgtrigger.Q(old__secret_made_at__df=pgtrigger.F("new__secret_made_at"))
        & ~pgtrigger.Q(old__sealed=""),
    ),
    pghistory.DeleteEvent("deleted"),
    fields=[
        *_TARGET,
        "host",
        "secret_made_at",
    ],
)


class Event(models.Model):
    """All event tables as one log (a view: pools/sql/event_log.sql)."""

    id = models.BigIntegerField(primary_key=True)
    at = models.DateTimeField()
    type = models.TextField()
    table = models.TextField()  # the event table, which has the snapshots before and after
    object_id = models.BigIntegerField()
    cluster_id = models.BigIntegerField(null=True)
    pool_id = models.BigIntegerField(null=True)
    cidr = models.TextField()
    holder_kind = models.TextField()
    holder_id = models.TextField()
    org = models.TextField(_("organization"))
    env = models.TextField(_("environment"))
    actor = models.TextField(_("actor"))
    request_id = models.TextField()
    reason = models.TextField()
    message = models.TextField()

    class Meta:
        verbose_name = _("event")
        verbose_name_plural = _("events")
        managed = False
        db_table = "pools_event_log"
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.type} {self.cidr or self.object_id}"
