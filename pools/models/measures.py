"""What processes count and time: summed up here, because a scrape reaches only one of them."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models


class Measure(models.Model):
    """A running total of one metric with its labels (a JSON object as text, keys in order)."""

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
    """Up to which number the events of a log are part of the totals.

    Every number up to `seen` was drawn before the transactions `waits_for` (virtual ids) were looked
    at, which had drawn some and had not ended: when they have, no event up to it can appear any more.
    """

    log = models.CharField(max_length=63, primary_key=True)
    counted = models.BigIntegerField(default=0)
    seen = models.BigIntegerField(default=0)
    waits_for = ArrayField(models.CharField(max_length=40), default=list)

    def __str__(self) -> str:
        return f"{self.log} until {self.counted}"
