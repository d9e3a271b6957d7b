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

    REMOVED = "removed", "removed"  # the pool has the CIDR no more
    KEPT = "kept", "kept"  # the drained range stays reserved
    ABORTED = "aborted", "aborted"  # what it reserved was given back


class CIDRMigration(models.Model):
    """That a CIDR of a pool, or a range of it, shall be emptied in favour of another.

    Only what somebody wants: how far it is follows from the pool, its ranges and its blocks,
    whoever changes them. `first` and `last` are what is emptied, `to` the CIDR that takes its place,
    `in_use` the blocks in use there when it began.
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
    # The reserved ranges that it made; no foreign keys, because a range may go before it.
    range_ids = ArrayField(models.BigIntegerField(), default=list, blank=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    started_by = models.CharField(max_length=150)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=7, choices=MigrationOutcome, blank=True, default="")

    class Meta:
        verbose_name = _("migration of a CIDR")
        verbose_name_plural = _("migrations of CIDRs")
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
