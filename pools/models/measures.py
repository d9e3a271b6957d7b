"""Counters and timings of processes, summed in rows, because a scrape reaches only one process."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Measure(models.Model):
    """The total of one metric with its labels (a JSON object as text, keys sorted)."""

    name = models.CharField(max_length=120)
    labels = models.TextField(default="{}")
    value = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "labels"], name="measure_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.name}{self.labels}"


class CountedUntil(models.Model):
    """The number up to which the events of a log are counted in the totals.

    Every number up to `assigned` was assigned before the transactions `waits_for` were listed (virtual ids of
    transactions that had drawn a number and had not ended). When they have ended, no event up to `assigned`
    can appear any more.
    """

    log = models.CharField(max_length=63, primary_key=True)
    counted = models.BigIntegerField(default=0)
    assigned = models.BigIntegerField(default=0)
    waits_for = ArrayField(models.CharField(max_length=40), default=list)

    def __str__(self) -> str:
        return f"{self.log} until {self.counted}"
