"""Pending allocation requests, environments, idempotency keys and stored counts."""

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Q
from django.utils.translation import gettext_lazy as _

from pools.models.clusters import Cluster
from pools.models.pools import Pool


class Environment(models.Model):
    """A tenant's environment; `degraded_since` is set while allocations for it fail (`env_status_view`)."""

    # No separate index: the unique index begins with this column and serves each allocation.
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="environments", db_index=False
    )
    org = models.CharField(_("organization"), max_length=253, blank=True, default="")
    env = models.CharField(max_length=253)
    degraded_since = models.DateTimeField(null=True, blank=True)
    reason = models.CharField(max_length=63, blank=True, default="")
    message = models.CharField(max_length=500, blank=True, default="")
    description = models.CharField(
        max_length=500,
        blank=True,
        default="",
        db_default="",  # pools/sql/allocate.sql names no value
    )
    # When somebody declared it; None: it appeared with its first allocation.
    declared_at = models.DateTimeField(null=True, blank=True)
    # The pool of the refusal with which the environment became degraded last.
    refusing_pool = models.ForeignKey(
        Pool, on_delete=models.SET_NULL, related_name="+", null=True, blank=True, db_index=False
    )

    class Meta:
        verbose_name = _("environment")
        verbose_name_plural = _("environments")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "org", "env"], name="environment_unique"),
            models.CheckConstraint(
                name="environment_degraded_has_reason",
                condition=Q(degraded_since=None, reason="")
                | Q(degraded_since__isnull=False) & ~Q(reason=""),
            ),
        ]
        indexes = [
            models.Index(  # the order of the list, degraded ones first
                F("degraded_since").desc(nulls_last=True), "org", "env", "id",
                name="environment_list",
            ),
            models.Index(fields=["org", "-id"], name="environment_org"),
            models.Index(fields=["env"], name="environment_env"),
        ]  # fmt: skip

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
    """The state of an allocation request."""

    PENDING = "pending", _("pending")  # retried each cycle and when space is released
    FULFILLED = "fulfilled", _("fulfilled")
    CANCELLED = "cancelled", _("cancelled")


class AllocationRequest(models.Model):
    """A request that waits for space in an exhausted pool (`"wait": true`)."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="requests")
    demand = models.JSONField()  # as allocator.requests.demand_to_json returns it
    holder_kind = models.CharField(max_length=63)
    holder_id = models.CharField(max_length=253)
    org = models.CharField(_("organization"), max_length=253, blank=True, default="")
    env = models.CharField(_("environment"), max_length=253, blank=True, default="")
    state = models.CharField(max_length=9, choices=RequestState, default=RequestState.PENDING)
    attempts = models.PositiveIntegerField(_("attempts"), default=1)
    last_error = models.CharField(_("last error"), max_length=500, blank=True, default="")
    created_at = models.DateTimeField()
    next_try_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    # Ids of the allocated blocks; no foreign keys, because a request does not prevent their deletion.
    block_ids = ArrayField(models.BigIntegerField(), default=list, blank=True)

    class Meta:
        verbose_name = _("allocation request")
        verbose_name_plural = _("allocation requests")
        ordering = ["id"]
        indexes = [
            models.Index(
                fields=["pool", "id"], condition=Q(state="pending"), name="request_pending"
            ),
            models.Index(
                fields=["next_try_at"], condition=Q(state="pending"), name="request_next_try"
            ),
            models.Index(fields=["state", "-id"], name="request_state"),
        ]

    def __str__(self) -> str:
        return f"{self.holder_kind} {self.holder_id} in {self.pool}"


class IdempotencyKey(models.Model):
    """The answer to a request, stored for 24 hours by the transaction that executed it."""

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
    """Stored counts of pools that are too large to count for each page; no decision uses them."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="usage_rows")
    family = models.PositiveSmallIntegerField()
    held = models.BigIntegerField()
    cooling = models.BigIntegerField()
    withheld = models.BigIntegerField()  # of the held and cooling blocks
    counted_at = models.DateTimeField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pool", "family"], name="pool_usage_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}/{self.family}"
