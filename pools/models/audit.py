"""The seal on the history: events of a day, chained to the day before."""

from __future__ import annotations

from django.db import models


class AuditSegment(models.Model):
    """Consecutive events of one day, by their numbers, and their digest.

    Each digest is taken over the one before it (of the day, or the last one of the day before), so
    that an event that is changed, added or taken away later is found, and between which numbers.
    """

    day = models.DateField()  # UTC
    first_id = models.BigIntegerField()
    last_id = models.BigIntegerField()
    count = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)  # SHA-256, hex
    sealed_at = models.DateTimeField()
    purged_at = models.DateTimeField(null=True)  # its events went with the retention

    class Meta:
        ordering = ["id"]
        indexes = [models.Index(fields=["day", "id"], name="audit_segment_day")]

    def __str__(self) -> str:
        return f"{self.day}: {self.first_id}-{self.last_id}"
