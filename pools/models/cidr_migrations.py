"""Migrations of CIDRs."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField

from pools.models.fields import HostAddressField
from pools.models.pools import Pool, PoolCIDR


class MigrationOutcome(models.TextChoices):
    """How a migration ended."""

    REMOVED = "removed", _("removed")  # the CIDR was removed from the pool
    KEPT = "kept", _("kept")  # the drained range stays reserved
    ABORTED = "aborted", _("aborted")  # the ranges that it reserved were removed


class CIDRMigration(models.Model):
    """The intention to empty a CIDR of a pool, or a range of it, and to replace it.

    The progress is not stored: it is derived from the pool, its ranges and its blocks. `first` and
    `last` are the range to empty, `to` is the replacement CIDR, `in_use` the number of blocks in use in
    the range when the migration began.
    """

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="migrations")
    pool_cidr = models.ForeignKey(
        PoolCIDR, on_delete=models.SET_NULL, null=True, related_name="migrations"
    )
    cidr = CidrAddressField()
    first = HostAddressField()
    last = HostAddressField()
    to = CidrAddressField(null=True, blank=True)
    in_use = models.BigIntegerField()
    # The reserved ranges that it created; no foreign keys, because a range can be deleted before it.
    range_ids = ArrayField(models.BigIntegerField(), default=list, blank=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    started_by = models.CharField(max_length=150)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=7, choices=MigrationOutcome, blank=True, default="")

    class Meta:
        verbose_name = _("CIDR migration")
        verbose_name_plural = _("CIDR migrations")
        ordering = ["-id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["pool_cidr"],
                condition=Q(ended_at=None),
                name="one_migration_of_a_cidr",
                violation_error_code="already_exists",
            ),
            models.CheckConstraint(
                name="an_ended_migration_has_an_outcome",
                condition=Q(ended_at=None, outcome="") | Q(ended_at__isnull=False) & ~Q(outcome=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cidr} of {self.pool}"
