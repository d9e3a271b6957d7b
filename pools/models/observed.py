"""Observed objects of clusters and what they use, sync runs, findings, drift. None of it decides who holds a block."""

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GistIndex, OpClass
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField

from pools.core import redaction
from pools.core.observed.uses import Role
from pools.models.clusters import AddressSpace, Cluster


class ObservedObject(models.Model):
    """A Kubernetes object as last observed; its uid distinguishes it from a later object of its name.

    `missed_at` is when a complete list first did not contain the object: only a second such list, some
    time later, means that it was deleted. `problem` describes an error of the object itself, which never
    prevents the ingestion of other objects. Every sync run reads `pending` objects again, even if they
    did not change.
    """

    # No separate index: other indexes begin with this column, and the planner would prefer the small one.
    cluster = models.ForeignKey(
        Cluster, on_delete=models.CASCADE, related_name="objects_seen", db_index=False
    )
    kind = models.CharField(max_length=63)
    api_version = models.CharField(max_length=128)  # the version in which it was read
    namespace = models.CharField(max_length=253, blank=True, default="")
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64)
    resource_version = models.CharField(max_length=64)
    manifest = models.JSONField()
    problem_code = models.CharField(max_length=63, blank=True, default="")
    problem = models.CharField(max_length=1000, blank=True, default="")
    pending = models.BooleanField(default=False)
    # The CIDRs of a CiliumPodIPPool, written by a trigger; null if they are unknown.
    cidrs = ArrayField(CidrAddressField(), null=True, editable=False)
    # Digests of the manifests that Cadastre wrote last, by field manager; null before it wrote one.
    written = models.JSONField(null=True, editable=False)
    first_seen_at = models.DateTimeField()
    changed_at = models.DateTimeField()
    missed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("cluster object")
        verbose_name_plural = _("cluster objects")
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
        prefix = f"{self.namespace}/" if self.namespace else ""
        return f"{self.kind} {prefix}{self.name}"

    @property
    def shown_manifest(self) -> Any:
        """The manifest without secrets; `manifest` keeps them, because whole objects are written back."""
        return redaction.redact_values(self.manifest)

    @property
    def coded_problem(self) -> dict[str, str] | None:
        """The error of the object with its code, as REST shows it."""
        if not self.problem_code:
            return None
        return {"code": self.problem_code, "message": self.problem}


class Trigger(models.TextChoices):
    """The reason for a sync run."""

    SCHEDULE = "schedule", _("schedule")  # a full sync run was due
    WATCH = "watch", _("watch")  # watch events of the cluster
    CHANGE = "change", _("change")  # a change of the register, or a request
    DRY_RUN = "dry-run", _("dry run")


class SyncRun(models.Model):
    """One sync run of a cluster; `kinds` has the counts seen, changed, written and failed of each kind."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="runs")
    trigger = models.CharField(_("trigger"), max_length=8, choices=Trigger)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    succeeded = models.BooleanField(default=False)
    kinds = models.JSONField(default=dict)
    error_code = models.CharField(max_length=63, blank=True, default="")
    error = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        verbose_name = _("sync run")
        verbose_name_plural = _("sync runs")
        ordering = ["-id"]
        indexes = [models.Index(fields=["cluster", "-id"], name="sync_run_cluster")]

    def __str__(self) -> str:
        return f"{self.cluster} at {self.started_at}"

    @property
    def seconds(self) -> float | None:
        """The duration; None while it runs."""
        return (self.ended_at - self.started_at).total_seconds() if self.ended_at else None

    @property
    def coded_error(self) -> dict[str, str] | None:
        """The error that ended the run with its code, as REST shows it."""
        return {"code": self.error_code, "message": self.error} if self.error_code else None


class Severity(models.TextChoices):
    """The severity of a finding."""

    ERROR = "error", _("error")
    WARNING = "warning", _("warning")


class Finding(models.Model):
    """A finding of a sync run that a person should know: an overlap, an orphan, a leak, drift.

    The row exists as long as the finding is true. `subject` identifies it within the cluster and code.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="findings")
    kind = models.CharField(max_length=63)  # the kind of the handler that found it
    code = models.CharField(max_length=63)
    subject = models.CharField(max_length=600)
    severity = models.CharField(max_length=7, choices=Severity, default=Severity.WARNING)
    message = models.CharField(_("message"), max_length=1000)
    details = models.JSONField(default=dict)
    since = models.DateTimeField()

    class Meta:
        verbose_name = _("finding")
        verbose_name_plural = _("findings")
        ordering = ["-since", "-id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "code", "subject"], name="finding_unique"
            ),
        ]
        indexes = [models.Index(fields=["-since", "-id"], name="finding_since")]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class Drift(models.Model):
    """One field of an object that differs between the cluster and the register.

    `desired` and `observed` are JSON values, null for an absent field. Every sync run writes the rows.
    An ignored difference stays ignored until either value changes.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="drifts")
    kind = models.CharField(max_length=63)
    namespace = models.CharField(max_length=253, blank=True, default="")
    name = models.CharField(max_length=253)
    path = models.CharField(max_length=500)  # spec.ipv4.cidrs
    desired = models.JSONField(null=True)
    observed = models.JSONField(null=True)
    managers = models.JSONField(default=list)  # the field managers of the observed value
    since = models.DateTimeField()
    conflict = models.CharField(max_length=1000, blank=True, default="")  # why it was not written
    conflict_code = models.CharField(max_length=63, blank=True, default="", db_default="")
    ignored_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, blank=True, on_delete=models.SET_NULL, related_name="+"
    )
    ignored_at = models.DateTimeField(null=True, blank=True)
    ignored_reason = models.CharField(max_length=500, blank=True, default="")

    class Meta:
        verbose_name = _("drifted field")
        verbose_name_plural = _("drifted fields")
        ordering = ["cluster_id", "kind", "namespace", "name", "path"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "kind", "namespace", "name", "path"], name="drift_unique"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.path}"


ROLE_LABELS = {
    Role.SERVICES: _("Services"),
    Role.PODS: _("Pod CIDRs"),
    Role.POD_POOL: _("Pod pool of another IPAM"),
    Role.NODE: _("Node addresses"),
    Role.LOAD_BALANCER: _("Load balancer"),
    Role.EGRESS: _("Egress"),
    Role.SECONDARY: _("Secondary network"),
}


class ObservedCIDR(models.Model):
    """A CIDR that an object of a cluster uses; a range is several rows.

    The rows of an object are replaced when it changes, and removed when it is known to be deleted. They are
    read from the cluster only, and nobody changes them here. Those of VM networks without a pool are the addresses
    of their entries, claims and workloads, written by triggers (claims/sql/plan_addresses.sql).
    """

    # The cluster's own address space. No separate index: others begin with this column.
    space = models.ForeignKey(
        AddressSpace, on_delete=models.CASCADE, related_name="observed_cidrs", db_index=False
    )
    kind = models.CharField(_("kind"), max_length=63)
    namespace = models.CharField(max_length=253, blank=True, default="")
    name = models.CharField(_("name"), max_length=253)
    uid = models.CharField(max_length=64)
    role = models.CharField(
        _("role"),
        max_length=16,
        choices=[(role.value, label) for role, label in ROLE_LABELS.items()],
    )
    cidr = CidrAddressField()
    detail = models.CharField(_("detail"), max_length=200, blank=True, default="")

    class Meta:
        verbose_name = _("observed CIDR")
        verbose_name_plural = _("observed CIDRs")
        ordering = ["cidr", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["space", "kind", "uid", "role", "cidr"], name="observed_cidr_unique"
            ),
        ]
        indexes = [
            models.Index(fields=["cidr", "space"], name="observed_cidr_order"),
            models.Index(fields=["name"], name="observed_cidr_name"),
            GistIndex(OpClass("cidr", name="inet_ops"), name="observed_cidr_overlap"),
        ]

    def __str__(self) -> str:
        return f"{self.cidr} {self.kind} {self.object_name}"

    @property
    def cluster(self) -> Cluster:
        return self.space.cluster

    @property
    def object_name(self) -> str:
        """`namespace/name`, or the name of an object without a namespace."""
        return f"{self.namespace}/{self.name}" if self.namespace else self.name
