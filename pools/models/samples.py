"""How full pools were, day by day."""

from __future__ import annotations

from django.db import models

from pools.models.pools import Category


class Sample(models.Model):
    """One pool and family on one day, as last counted on it.

    Names instead of foreign keys: the sums of past days stay what they were when a pool goes.
    """

    day = models.DateField()  # UTC
    pool_id = models.BigIntegerField()
    cluster = models.CharField(max_length=63)
    pool = models.CharField(max_length=253)
    category = models.CharField(max_length=8, choices=Category)
    family = models.PositiveSmallIntegerField()
    capacity = models.DecimalField(max_digits=39, decimal_places=0)
    held = models.BigIntegerField()
    cooling = models.BigIntegerField()
    reserved = models.DecimalField(max_digits=39, decimal_places=0)
    taken_at = models.DateTimeField()

    class Meta:
        ordering = ["day", "pool_id", "family"]
        constraints = [
            models.UniqueConstraint(fields=["pool_id", "family", "day"], name="sample_unique")
        ]
        indexes = [models.Index(fields=["day"], name="sample_day")]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.pool} on {self.day}"
