"""Runs of the integrity checks."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _


class CheckRun(models.Model):
    """One run of the integrity checks with its author and its results.

    A row without `started_at` is a request that a worker has not begun yet. `report` has one object for
    each check, in the order in which they ran (pools/platform/checks/reports.py).
    """

    requested_at = models.DateTimeField()
    started_at = models.DateTimeField(null=True)
    ended_at = models.DateTimeField(null=True)
    repair = models.BooleanField(default=False)
    only = ArrayField(models.CharField(max_length=63), default=list, blank=True)  # empty: all
    seconds = models.PositiveIntegerField(default=300)  # its time limit
    actor = models.CharField(_("actor"), max_length=150, blank=True, default="")
    source = models.CharField(max_length=16, blank=True, default="")  # as events.Author has it
    complete = models.BooleanField(default=False)  # False if the time limit ended the run
    violations = models.PositiveIntegerField(default=0)
    repaired = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=list)

    class Meta:
        verbose_name = _("check")
        verbose_name_plural = _("checks")
        ordering = ["-id"]
        permissions = [
            ("run_checks", "Can run integrity checks"),
            ("repair", "Can repair violations"),
        ]

    def __str__(self) -> str:
        return f"check {self.pk}"
