"""What processes count and time: summed up here, because a scrape reaches only one of them."""

from __future__ import annotations

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
    """Up to when the events of a table are part of the totals."""

    table = models.CharField(max_length=63, primary_key=True)
    until = models.DateTimeField()

    def __str__(self) -> str:
        return f"{self.table} until {self.until}"
