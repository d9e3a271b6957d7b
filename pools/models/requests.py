from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q

from pools.models.clusters import Cluster
from pools.models.pools import Pool


class Environment(models.Model):
    """A tenant's environment and whether it lacks addresses (`env_status_view`)."""

    # Without an index of its own: the unique one begins with it, and each allocation looks there.
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="environments", db_index=False
    )
    org = models.CharField(max_length=253, blank=True, default="")
    env = models.CharField(max_length=253)
    degraded_since = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=63, blank=True, default="")
    message = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "org", "env"], name="environment_unique"),
            models.CheckConstraint(
                name="environment_degraded_has_reason",
                condition=Q(degraded_since=None, reason="")
                | Q(degraded_since__isnull=False) & ~Q(reason=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.org}/{self.env}" if self.org else self.env

    @property
    def degraded(self) -> bool:
        """Whether the last allocation failed."""
        return self.degraded_since is not None

    @property
    def status(self) -> str:
        """`ok` or `degraded`."""
        return "degraded" if self.degraded else "ok"


class RequestState(models.TextChoices):
    """Where a pending request stands."""

    PENDING = "pending", "pending"  # tried again each cycle and when space is released
    FULFILLED = "fulfilled", "fulfilled"
    CANCELLED = "cancelled", "cancelled"


class AllocationRequest(models.Model):
    """A request that found its pool exhausted and waits for space (`"wait": true`)."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="requests")
    wanted = models.JSONField()  # the arguments of the allocation, as `allocation.Wanted` says
    holder_kind = models.CharField(max_length=63)
    holder_id = models.CharField(max_length=253)
    org = models.CharField(max_length=253, blank=True, default="")
    env = models.CharField(max_length=253, blank=True, default="")
    state = models.CharField(max_length=9, choices=RequestState, default=RequestState.PENDING)
    attempts = models.PositiveIntegerField(default=1)
    last_error = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField()
    next_try_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    # What it got, by id; no foreign keys, because a finished request keeps no block from its end.
    block_ids = ArrayField(models.BigIntegerField(), default=list, blank=True)

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(
                fields=["pool", "id"], condition=Q(state="pending"), name="request_pending"
            ),
            models.Index(
                fields=["next_try_at"], condition=Q(state="pending"), name="request_next_try"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.holder_kind} {self.holder_id} in {self.pool}"


class IdempotencyKey(models.Model):
    """The answer to a request, kept 24 hours in the transaction that did the work."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    key = models.CharField(max_length=255)
    fingerprint = models.CharField(max_length=64)  # SHA-256 of method, path and body, hex
    status = models.PositiveSmallIntegerField(default=0)
    answer = models.JSONField(null=True)
    created_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "key"], name="idempotency_key_unique"),
        ]
        indexes = [models.Index(fields=["created_at"], name="idempotency_key_age")]

    def __str__(self) -> str:
        return f"{self.user_id}:{self.key[:8]}…"


class PoolUsage(models.Model):
    """Counted now and then for pools too large to count on each page; never used to decide."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="usage_rows")
    family = models.PositiveSmallIntegerField()
    held = models.BigIntegerField()
    cooling = models.BigIntegerField()
    withheld = models.BigIntegerField()  # of the held and cooling ones
    counted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pool", "family"], name="pool_usage_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}/{self.family}"
