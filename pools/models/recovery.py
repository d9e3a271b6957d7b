"""Recovery mode: after a restore the clusters may have newer state, so that nothing is allocated."""

from __future__ import annotations

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Recovery(models.Model):
    """A period in which nothing is allocated, until every connected cluster was listed once.

    Only a full sync run with an id above `after_run` counts.
    """

    since = models.DateTimeField()
    after_run = models.BigIntegerField()
    reason = models.CharField(max_length=500)
    actor = models.CharField(max_length=150, blank=True, default="")
    ended_at = models.DateTimeField(null=True)
    ended_by = models.CharField(max_length=150, blank=True, default="")

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = _("recoveries")
        permissions = [("recover", "Can begin and end recovery mode")]
        constraints = [
            models.UniqueConstraint(
                fields=["ended_at"],
                condition=Q(ended_at=None),
                nulls_distinct=False,
                name="one_recovery_at_a_time",
            )
        ]

    def __str__(self) -> str:
        return f"recovery since {self.since}"
