"""Proofs of the register's invariants."""

from __future__ import annotations

from django.db import models


class CheckRun(models.Model):
    """One run of the checks: what was proved, what is wrong, what was repaired."""

    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    repair = models.BooleanField(default=False)
    actor = models.CharField(max_length=150, blank=True, default="")
    complete = models.BooleanField(default=False)  # False: its time was over before its end
    violations = models.PositiveIntegerField(default=0)
    repaired = models.PositiveIntegerField(default=0)
    report = models.JSONField(default=list)  # of each check: code, state, count, seconds, examples

    class Meta:
        ordering = ["-id"]
        permissions = [
            ("run_checks", "Can have the invariants proved"),
            ("repair", "Can have violations repaired"),
        ]

    def __str__(self) -> str:
        return f"check of {self.started_at}"
