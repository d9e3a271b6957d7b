"""The seal on the history: events in order of their numbers, chained by digests (docs/reference/history-and-audit.md)."""

from __future__ import annotations

import pgtrigger
from django.contrib.postgres.fields import ArrayField
from django.db import models


class AuditLayout(models.Model):
    """Which columns each event table had when segments were sealed: `{table: [column, …]}`.

    A later column is no part of what was sealed before it existed.
    """

    columns = models.JSONField()
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"layout {self.pk}"


class AuditSegment(models.Model):
    """The events with the numbers `after_id` + 1 to `last_id`, of all event tables, and their digest.

    The number is counted without a gap. `day` never goes back: it is the day of the newest event so
    far, so that a transaction which began before midnight and wrote after others of the new day
    stands with those. `marks` name the events: 20 bytes each, the distance of the event's number
    from `after_id` (4 bytes, big-endian) and the first 16 bytes of its SHA-256.
    """

    id = models.BigIntegerField(primary_key=True)  # 1, 2, … counted by the sealer
    day = models.DateField()  # UTC
    after_id = models.BigIntegerField(unique=True)
    last_id = models.BigIntegerField(unique=True)
    count = models.PositiveIntegerField()
    layout = models.ForeignKey(AuditLayout, on_delete=models.PROTECT, related_name="+")
    oldest_at = models.DateTimeField()  # of its events
    newest_at = models.DateTimeField()  # of its events and all before them
    marks = models.BinaryField()  # empty when all of its events were purged
    marks_digest = models.CharField(max_length=64)  # SHA-256, hex
    digest = models.CharField(max_length=64)  # over the digest before, the numbers and the marks'
    sealed_at = models.DateTimeField()
    # Its events went with the retention, but for `kept` of blocks that were still in use.
    purged_at = models.DateTimeField(null=True)
    kept = models.PositiveIntegerField(null=True)

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
                    "id", "day", "after_id", "last_id", "count", "layout", "oldest_at",
                    "newest_at", "marks_digest", "digest", "sealed_at",
                ],
            ),
        ]  # fmt: skip

    def __str__(self) -> str:
        return f"segment {self.pk} of {self.day}"


class SegmentName(models.Model):
    """A segment has events of this actor, org, env or holder's uid: an index that no allocation pays."""

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
    """By how much the events of a segment changed a pool's number of held blocks."""

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
    """One row: how far the log is sealed, and up to where it may be as soon as some have ended.

    Every number up to `horizon` was given out before the transactions `waits_for` (virtual ids, those
    that had drawn a number and had not ended) were looked at: when they are over, no event with such a
    number can appear any more. `lag_seconds` is the most by which an event followed a younger one.
    """

    id = models.PositiveSmallIntegerField(primary_key=True, default=1)
    segment = models.BigIntegerField(default=0)  # the last one
    horizon = models.BigIntegerField(default=0)
    waits_for = ArrayField(models.CharField(max_length=40), default=list)
    lag_seconds = models.FloatField(default=0)

    class Meta:
        constraints = [models.CheckConstraint(name="audit_state_once", condition=models.Q(id=1))]

    def __str__(self) -> str:
        return f"sealed up to segment {self.segment}"


class AuditVerification(models.Model):
    """What a verification found; `faults` are its first ones: `[{"code", "segment", "message", …}]`."""

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
