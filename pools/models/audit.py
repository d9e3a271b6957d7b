"""The audit chain: events in the order of their numbers, chained by digests (docs/reference/history-and-audit.md)."""

from __future__ import annotations

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models


class AuditLayout(models.Model):
    """The columns of each event table when segments were sealed: `{table: [column, …]}`.

    The digest of a segment covers the columns of its layout only, not columns that were added later.
    """

    columns = models.JSONField()
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"layout {self.pk}"


class AuditSegment(models.Model):
    """The events of all event tables with the numbers `after_id` + 1 to `last_id`, and their digest.

    Ids of segments have no gaps. `day` never decreases: it is the day of the newest event so far, so
    that an event of a transaction that began before midnight and wrote later than others of the new day
    belongs to the new day. `marks` identify the events by 20 bytes each: the distance of the event's
    number from `after_id` (4 bytes, big-endian) and the first 16 bytes of its SHA-256.
    """

    id = models.BigIntegerField(primary_key=True)  # 1, 2, … assigned by sealing
    day = models.DateField()  # UTC
    after_id = models.BigIntegerField(unique=True)
    last_id = models.BigIntegerField(unique=True)
    count = models.PositiveIntegerField()
    layout = models.ForeignKey(AuditLayout, on_delete=models.PROTECT, related_name="+")
    oldest_at = models.DateTimeField()  # time of its oldest event
    newest_at = models.DateTimeField()  # time of the newest of its events and all earlier ones
    marks = models.BinaryField()  # empty if all of its events were purged
    marks_digest = models.CharField(max_length=64)  # SHA-256, hex
    digest = models.CharField(max_length=64)  # of the previous digest, the numbers and marks_digest
    sealed_at = models.DateTimeField()
    # When the retention deleted its events, except for `retained` events of blocks in use.
    purged_at = models.DateTimeField(null=True)
    retained = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["day", "id"], name="audit_segment_day"),
            models.Index(fields=["newest_at"], name="audit_segment_newest"),
        ]
        triggers = [
            pgtrigger.Protect(name="kept", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(
                name="sealed",
                fields=[
                    "id",
                    "day",
                    "after_id",
                    "last_id",
                    "count",
                    "layout",
                    "oldest_at",
                    "newest_at",
                    "marks_digest",
                    "digest",
                    "sealed_at",
                ],
            ),
        ]

    def __str__(self) -> str:
        return f"segment {self.pk} of {self.day}"


class SegmentName(models.Model):
    """An actor, org, env or holder's uid in the events of a segment.

    It is an index for searches that costs allocations nothing.
    """

    class NameKind(models.TextChoices):
        ACTOR = "actor", "actor"
        ORG = "org", "org"
        ENV = "env", "env"
        UID = "uid", "uid"

    kind = models.CharField(max_length=5, choices=NameKind)
    name = models.CharField(max_length=253)
    segment = models.ForeignKey(
        AuditSegment, models.DO_NOTHING, related_name="+", db_constraint=False
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "name", "segment"], name="segment_name_unique")
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


class SegmentTally(models.Model):
    """The change of a pool's number of held blocks by the events of a segment."""

    pool_id = models.BigIntegerField()
    family = models.PositiveSmallIntegerField()
    segment = models.ForeignKey(
        AuditSegment, models.DO_NOTHING, related_name="+", db_constraint=False, db_index=False
    )
    held = models.IntegerField()

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["pool_id", "segment", "family"], name="segment_tally_unique"
            )
        ]

    def __str__(self) -> str:
        return f"pool {self.pool_id}: {self.held:+}"


class AuditState(models.Model):
    """The state of sealing, in one row: the last sealed segment and the next possible end.

    Every number up to `horizon` was assigned before the transactions `waits_for` were listed (virtual
    ids of transactions that had drawn a number and had not ended). When they have ended, no event with
    such a number can appear any more. `lag_seconds` is the largest delay of an event behind a later one.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    segment = models.BigIntegerField(default=0)  # the last sealed one
    horizon = models.BigIntegerField(default=0)
    waits_for = ArrayField(models.CharField(max_length=40), default=list)
    lag_seconds = models.FloatField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(name="audit_state_once", condition=models.Q(id=1))]

    def __str__(self) -> str:
        return f"sealed up to segment {self.segment}"


class AuditVerification(models.Model):
    """The result of a verification; `faults` are the first ones: `[{"code", "segment", "message", …}]`."""

    started_at = models.DateTimeField()
    finished_at = models.DateTimeField()
    since = models.DateField(null=True)  # None: from the beginning
    segments = models.PositiveIntegerField()
    events = models.PositiveBigIntegerField()
    fault_count = models.PositiveIntegerField()
    faults = models.JSONField(default=list)

    class Meta:
        ordering = ["-id"]

    def __str__(self) -> str:
        return f"{self.started_at:%Y-%m-%d}: {self.fault_count} faults"

    @property
    def ok(self) -> bool:
        return self.fault_count == 0
