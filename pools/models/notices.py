"""Conditions that somebody should know of, and to whom they are told."""

from __future__ import annotations

import uuid

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Level(models.TextChoices):
    """How bad it is."""

    ERROR = "error", "error"
    WARNING = "warning", "warning"


class Notice(models.Model):
    """A condition of one subject, from when it was first seen until it had ended."""

    code = models.CharField(max_length=63)  # pool_nearly_full, cluster_stale, …
    subject = models.CharField(max_length=500)  # pool/12, cluster/3: what tells it from its like
    level = models.CharField(max_length=7, choices=Level)
    title = models.CharField(max_length=300)
    detail = models.CharField(max_length=1000, blank=True, default="")
    url = models.CharField(max_length=500, blank=True, default="")  # path of the page about it
    since = models.DateTimeField()
    seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["code", "subject"], condition=Q(ended_at=None), name="notice_open_once"
            )
        ]

    def __str__(self) -> str:
        return self.title


class WebhookTarget(models.Model):
    """An address that is told of notices; its key is sealed and signs what is sent."""

    name = models.CharField(max_length=100, unique=True)
    url = models.CharField(max_length=500)
    # All that events tell of the URL: with some receivers its path is the secret.
    host = models.CharField(max_length=500, editable=False, default="", db_default="")
    ca = models.TextField(blank=True, default="")  # PEM; "" trusts the system's own
    sealed = models.TextField(editable=False)
    codes = ArrayField(models.CharField(max_length=63), default=list, blank=True)  # empty: all
    enabled = models.BooleanField(default=True)
    created_at = models.DateTimeField()
    secret_made_at = models.DateTimeField()

    # How it answers, and who sends to it now.
    failures = models.PositiveIntegerField(default=0, editable=False)  # in a row
    wait_until = models.DateTimeField(null=True, editable=False)  # nothing is sent before
    leased_until = models.DateTimeField(null=True, editable=False)
    fence = models.BigIntegerField(default=0, editable=False)

    class Meta:
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class DeliveryState(models.TextChoices):
    """Where a delivery stands."""

    PENDING = "pending", "pending"
    DELIVERED = "delivered", "delivered"
    FAILED = "failed", "failed"  # tried for the last time


class DeliveryEvent(models.TextChoices):
    """What is told."""

    OPENED = "opened", "opened"
    CHANGED = "changed", "changed"  # it is worse or better than before
    ENDED = "ended", "ended"
    TEST = "test", "test"
    ANCHOR = "anchor", "anchor"  # of the audit chain


class Delivery(models.Model):
    """One message to one target: written with the notice, sent by a worker until it arrives."""

    target = models.ForeignKey(WebhookTarget, on_delete=models.CASCADE, related_name="deliveries")
    notice = models.ForeignKey(
        Notice, on_delete=models.CASCADE, related_name="deliveries", null=True
    )
    uid = models.UUIDField(unique=True, default=uuid.uuid4)  # the same for every try
    event = models.CharField(max_length=8, choices=DeliveryEvent)
    body = models.TextField()  # JSON, as it was when it happened
    state = models.CharField(max_length=9, choices=DeliveryState, default=DeliveryState.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()
    last_status = models.PositiveSmallIntegerField(null=True)  # of HTTP
    last_error = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = _("deliveries")
        constraints = [
            models.UniqueConstraint(
                fields=["target", "notice", "event"],
                condition=Q(event__in=["opened", "ended"]),
                name="delivery_unique",
            )
        ]
        indexes = [
            models.Index(
                fields=["target", "next_try_at"],
                condition=Q(state="pending"),
                name="delivery_next_try",
            )
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.uid} to {self.target}"
