"""The audit chain: events in the order of their numbers, chained by digests (docs/reference/history-and-audit.md)."""

import pgtrigger
from django.db import models


class AuditLayout(models.Model):
    """The columns of each event table when segments were sealed: `{table: [column, …]}`.

    The digest of a segment covers the columns of its layout only, not columns that were added later.
    """

    columns = models.JSONField()

    def __str__(self) -> str:
        return f"layout {self.pk}"


class AuditSegment(models.Model):
    """The events of all event tables with the numbers `after_id` + 1 to `last_id`, and their digest.

    Ids of segments have no gaps. `marks` identify the events by 24 bytes each: the event's number (big-endian)
    and the first 16 bytes of its SHA-256.
    """

    id = models.BigIntegerField(primary_key=True)  # 1, 2, … assigned by sealing
    after_id = models.BigIntegerField(unique=True)
    last_id = models.BigIntegerField(unique=True)
    count = models.PositiveIntegerField()
    layout = models.ForeignKey(AuditLayout, on_delete=models.PROTECT, related_name="+")
    oldest_at = models.DateTimeField()  # time of its oldest event
    newest_at = models.DateTimeField()  # time of the newest of its events and all earlier ones
    marks = models.BinaryField()
    digest = models.CharField(max_length=64)  # SHA-256 of the previous digest and all above, hex
    # When the retention deleted its events, except for `retained` events of blocks in use.
    purged_at = models.DateTimeField(null=True)
    retained = models.PositiveIntegerField(null=True)

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["newest_at"], name="audit_segment_newest")]
        triggers = [
            pgtrigger.Protect(name="kept", operation=pgtrigger.Delete),
            pgtrigger.ReadOnly(name="sealed", exclude=["purged_at", "retained"]),
        ]

    def __str__(self) -> str:
        return f"segment {self.pk}: events {self.after_id + 1} to {self.last_id}"

    @property
    def anchor(self) -> str:
        """The text that `ipam audit verify --anchor` takes, to be kept outside of the database."""
        return f"{self.pk}:{self.digest}"
