"""Alerts about conditions, silences, and the webhook targets that receive alerts."""

import uuid

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _


class Level(models.TextChoices):
    """The severity of an alert, the most severe first."""

    ERROR = "error", _("error")
    WARNING = "warning", _("warning")
    INFO = "info", _("info")  # is sent to those who ask for it


class Alert(models.Model):
    """An alert: a condition of one subject, from its first detection to its end."""

    code = models.CharField(max_length=63)  # pool_nearly_full, cluster_stale, …
    subject = models.CharField(max_length=500)  # pool/12, cluster/3: identifies it within its code
    level = models.CharField(max_length=7, choices=Level)
    title = models.CharField(max_length=300)
    detail = models.CharField(max_length=1000, blank=True, default="")
    url = models.CharField(max_length=500, blank=True, default="")  # path of the page about it
    # Alerts with the same cause are one problem; "" for an alert that is a problem of its own.
    cause = models.CharField(max_length=500, blank=True, default="")
    since = models.DateTimeField()
    seen_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    # Who works on it; without a time until it ends (pools/platform/alerts/open_alerts.py).
    acknowledged_at = models.DateTimeField(null=True)
    acknowledged_by = models.CharField(max_length=150, blank=True, default="", db_default="")
    acknowledged_until = models.DateTimeField(null=True)
    acknowledged_reason = models.CharField(max_length=500, blank=True, default="", db_default="")

    class Meta:
        ordering = ["-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["code", "subject"], condition=Q(ended_at=None), name="alert_open_once"
            )
        ]

    def __str__(self) -> str:
        return self.title

    @property
    def is_open(self) -> bool:
        """True until the condition ends."""
        return self.ended_at is None

    @property
    def is_acknowledged(self) -> bool:
        """True while somebody works on the open alert."""
        return self.ended_at is None and self.acknowledged_at is not None


class Silence(models.Model):
    """Alerts of a kind, of a cluster, or of both, that are acknowledged when they open, until a time."""

    code = models.CharField(max_length=63, blank=True, default="")  # "": of every condition
    # None: of every cluster, and of none.
    cluster = models.ForeignKey(
        "pools.Cluster", on_delete=models.CASCADE, null=True, related_name="silences"
    )
    until = models.DateTimeField()
    reason = models.CharField(max_length=500)
    made_by = models.CharField(max_length=150)
    created_at = models.DateTimeField()

    class Meta:
        verbose_name = _("silence")
        verbose_name_plural = _("silences")
        ordering = ["until", "id"]
        constraints = [
            models.CheckConstraint(
                condition=~Q(code="") | Q(cluster__isnull=False), name="silence_not_of_all"
            )
        ]

    def __str__(self) -> str:
        return f"{self.code} {self.cluster or ''}".strip()


class TargetKind(models.TextChoices):
    """How a target receives messages."""

    WEBHOOK = "webhook", _("webhook")
    EMAIL = "email", _("e-mail")
    SERVICE = "service", _("service")  # by Apprise


class WebhookTarget(models.Model):
    """A receiver of alerts by its URL: a signed webhook, e-mail, or a service of Apprise.

    The key that signs the messages is stored encrypted, and so is what is secret of the URL.
    """

    name = models.CharField(max_length=100, unique=True)
    url = models.CharField(max_length=500)
    # The only part of the URL in events: with some receivers its path is the secret.
    host = models.CharField(max_length=500, editable=False, default="", db_default="")
    ca = models.TextField(blank=True, default="")  # PEM; "" trusts the system's own
    sealed = models.TextField(editable=False)
    codes = ArrayField(models.CharField(max_length=63), default=list, blank=True)  # empty: all
    enabled = models.BooleanField(default=True)
    alerts = models.BooleanField(default=True, db_default=True)  # False: receives events only
    least_level = models.CharField(
        max_length=7, choices=Level, default=Level.WARNING, db_default=Level.WARNING
    )
    # One message a day about the open alerts, instead of one about each change.
    digest = models.BooleanField(default=False, db_default=False)
    digest_on = models.DateField(null=True, editable=False)  # the day of the last one
    # Whose own target it is: nothing is sent unless they may view alerts. None: shared.
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, null=True)

    # Events of the log that the target receives (pools/platform/alerts/outbox.py): types such as
    # `pool.created`, or their first words; empty: none. Empty clusters (also of alerts) and pools: all. Ids,
    # which stay when their object is deleted, so that a subscription never becomes wider.
    event_types = ArrayField(
        models.CharField(max_length=63), default=list, db_default=[], blank=True
    )
    clusters = ArrayField(models.BigIntegerField(), default=list, db_default=[], blank=True)
    event_pools = ArrayField(models.BigIntegerField(), default=list, db_default=[], blank=True)
    # The number of the last event for which messages were written, as far as it matches.
    event_position = models.BigIntegerField(default=0, db_default=0, editable=False)
    created_at = models.DateTimeField()
    secret_made_at = models.DateTimeField()

    # The result of the last attempts.
    failures = models.PositiveIntegerField(default=0, editable=False)  # in a row
    accepted_at = models.DateTimeField(null=True, editable=False)  # the last message
    switched_off_at = models.DateTimeField(null=True, editable=False)  # after too many of them
    wait_until = models.DateTimeField(null=True, editable=False)  # nothing is sent before this time

    class Meta:
        verbose_name = _("webhook target")
        verbose_name_plural = _("webhook targets")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name

    @property
    def kind(self) -> TargetKind:
        """What the scheme of the URL says."""
        scheme = self.url.partition(":")[0]
        return {"https": TargetKind.WEBHOOK, "mailto": TargetKind.EMAIL}.get(
            scheme, TargetKind.SERVICE
        )


class DeliveryState(models.TextChoices):
    """The state of a delivery."""

    PENDING = "pending", _("pending")
    DELIVERED = "delivered", _("delivered")
    FAILED = "failed", _("failed")  # the last attempt has failed


class DeliveryEvent(models.TextChoices):
    """The kind of a message."""

    OPENED = "opened", _("opened")
    CHANGED = "changed", _("changed")  # the level has changed
    ENDED = "ended", _("ended")
    TEST = "test", _("test")
    DIGEST = "digest", _("digest")
    EVENT = "event", _("event")  # an event of the log


class Delivery(models.Model):
    """One message to one target: written with the alert, and sent by a worker until it is received."""

    target = models.ForeignKey(WebhookTarget, on_delete=models.CASCADE, related_name="deliveries")
    alert = models.ForeignKey(Alert, on_delete=models.CASCADE, related_name="deliveries", null=True)
    log_event = models.BigIntegerField(null=True)  # the number of the event that it is about
    uid = models.UUIDField(unique=True, default=uuid.uuid4)  # the same for every attempt
    event = models.CharField(max_length=8, choices=DeliveryEvent)
    body = models.TextField()  # JSON, with the values at the time of the event
    state = models.CharField(max_length=9, choices=DeliveryState, default=DeliveryState.PENDING)
    attempts = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()
    last_status = models.PositiveSmallIntegerField(null=True)  # HTTP status
    last_error = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField()
    delivered_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-id"]
        verbose_name_plural = _("deliveries")
        constraints = [
            models.UniqueConstraint(
                fields=["target", "alert", "event"],
                condition=Q(event__in=["opened", "ended"]),
                name="delivery_unique",
            )
        ]
        indexes = [
            models.Index(
                fields=["target", "next_try_at"],
                condition=Q(state="pending"),
                name="delivery_next_try",
            ),
            models.Index(
                fields=["target", "id"], condition=Q(state="failed"), name="delivery_failed"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.event} {self.uid} to {self.target}"
