"""What is seen in clusters, and what is found out about it. None of it decides who holds a block."""

from __future__ import annotations

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField

from pools.models.clusters import Cluster


class ObservedObject(models.Model):
    """A Kubernetes object as it was last seen; its uid tells it from a later one of its name.

    `missed_at` is when a complete list first came without it: only a second one, some time later,
    counts as its end. `problem` is what is wrong with the object itself, which never keeps others
    from being taken in. `pending` objects are looked at in every pass although they did not change.
    """

    # Without an index of its own: others begin with it, and one so small would be preferred to them.
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="objects_seen", db_index=False
    )
    kind = models.CharField(max_length=63)
    api_version = models.CharField(max_length=128)  # of the version that it was read through
    namespace = models.CharField(max_length=253, blank=True, default="")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    resource_version = models.CharField(max_length=64)
    manifest = models.JSONField()
    problem_code = models.CharField(max_length=63, blank=True, default="")
    problem = models.CharField(max_length=1000, blank=True, default="")
    pending = models.BooleanField(default=False)
    # Of a CiliumPodIPPool: the CIDRs that it has, written by a trigger; null where they are unknown.
    cidrs = ArrayField(CidrAddressField(), null=True, editable=False)
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    missed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("object of a cluster")
        verbose_name_plural = _("objects of clusters")
        ordering = ["cluster_id", "kind", "namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "kind", "uid"], name="object_seen_unique"),
        ]
        indexes = [
            models.Index(fields=["cluster", "kind", "namespace", "name"], name="object_seen_name"),
            models.Index(
                fields=["cluster", "kind"],
                condition=Q(pending=True) | ~Q(problem_code="") | Q(missed_at__isnull=False),
                name="object_seen_open",
            ),
        ]

    def __str__(self) -> str:
        place = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {place}{self.name}"


class Trigger(models.TextChoices):
    """Why a pass ran."""

    SCHEDULE = "schedule", "schedule"  # the full pass that is due
    WATCH = "watch", "watch"  # events of the cluster
    CHANGE = "change", "change"  # somebody changed the register, or asked for it
    DRY_RUN = "dry-run", _("dry run")


class Run(models.Model):
    """One pass over one cluster. `kinds` has for each kind seen, changed, written, failed (counts)."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="runs")
    trigger = models.CharField(max_length=8, choices=Trigger)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    succeeded = models.BooleanField(default=False)
    kinds = models.JSONField(default=dict)
    error_code = models.CharField(max_length=63, blank=True, default="")
    error = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        verbose_name = _("pass")
        verbose_name_plural = _("passes")
        ordering = ["-id"]
        indexes = [models.Index(fields=["cluster", "-id"], name="run_cluster")]

    def __str__(self) -> str:
        return f"{self.cluster} at {self.started_at}"


class Severity(models.TextChoices):
    """How loud a finding is."""

    ERROR = "error", "error"
    WARNING = "warning", "warning"


class Finding(models.Model):
    """Something that a pass found and a person should know: overlaps, orphans, leaks, differences.

    It exists as long as it is true. `subject` names what it is about within the cluster and code.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="findings")
    kind = models.CharField(max_length=63)  # of the handler that found it
    code = models.CharField(max_length=63)
    subject = models.CharField(max_length=600)
    severity = models.CharField(max_length=7, choices=Severity, default=Severity.WARNING)
    message = models.CharField(max_length=1000)
    details = models.JSONField(default=dict)
    since = models.DateTimeField()

    class Meta:
        ordering = ["-since", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "code", "subject"], name="finding_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.code}: {self.subject}"


class Drift(models.Model):
    """One field of an object that is another in the cluster than in the register.

    `desired` and `observed` are JSON values, null for an absent field. Written by every pass;
    what somebody chose to ignore stays ignored until either value changes.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="drifts")
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=253, blank=True, default="")
    name = models.CharField(max_length=253)
    path = models.CharField(max_length=500)  # spec.ipv4.cidrs
    desired = models.JSONField(null=True)
    observed = models.JSONField(null=True)
    managers = models.JSONField(default=list)  # who wrote what is observed, as the cluster says
    since = models.DateTimeField()
    conflict = models.CharField(max_length=1000, blank=True, default="")  # why it was not written
    conflict_code = models.CharField(max_length=63, blank=True, default="", db_default="")
    ignored_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    ignored_at = models.DateTimeField(null=True, blank=True)
    ignored_reason = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        verbose_name = _("difference")
        verbose_name_plural = _("differences")
        ordering = ["cluster_id", "kind", "namespace", "name", "path"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "namespace", "name", "path"], name="drift_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.path}"
