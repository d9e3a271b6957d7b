from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from pools.models.clusters import Cluster


class Mode(models.TextChoices):
    """Who writes to the cluster."""

    OBSERVED = "observed", "observed"  # nothing is ever written to it
    MANAGED = "managed", "managed"  # what the managed resources say is written to it


class ManagedResource(models.TextChoices):
    """What is written to a managed cluster; each has its own switch."""

    POOLS = "pools", "CiliumPodIPPools"
    POD_CIDRS = "pod-cidrs", _("PodCIDRs of CiliumNodes")
    CLAIMS = "claims", _("status of IPAMClaims")
    IPPOOL_STATUS = "ippool-status", _("status of IPPools")
    CONVERSION = "conversion", _("v2 objects for pools of a separate v2alpha1 store")


class Connection(models.Model):
    """How one cluster's API server is reached, what may be written to it, and how that went.

    `sealed` holds server, CA and credentials, encrypted (pools/platform/outbound/secrets.py). `identity` is
    the uid of the namespace kube-system, pinned at the first contact: the same address may be
    another cluster one day. The lease (`leased_by`, `leased_until`, `fence`) lets one worker at a
    time work on the cluster; whoever writes in its name proves its fence in the same transaction.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="connection")
    server = models.CharField(max_length=500)
    sealed = models.TextField(editable=False)
    in_cluster = models.BooleanField(default=False)  # credentials are those of our own pod
    mode = models.CharField(max_length=8, choices=Mode, default=Mode.OBSERVED)
    managed_resources = ArrayField(
        models.CharField(max_length=16, choices=ManagedResource), default=list, blank=True
    )
    paused = models.BooleanField(default=False)
    identity = models.CharField(max_length=64, blank=True, default="", editable=False)
    version = models.CharField(max_length=64, blank=True, default="", editable=False)
    # When the token or the client certificate ends, as far as it says so itself.
    expires_at = models.DateTimeField(null=True, editable=False)

    # How the last passes went; the state that people see is worked out of these.
    tried_at = models.DateTimeField(null=True, editable=False)
    succeeded_at = models.DateTimeField(null=True, editable=False)  # every kind, a full pass
    error_code = models.CharField(max_length=63, blank=True, default="", editable=False)
    error = models.CharField(max_length=500, blank=True, default="", editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False)  # in a row
    # Objects that the last full pass could not take in or write, and those that a watch told since.
    failed_objects = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    # By kind: the `api_version` that is read, "" when it is not served, and what it `shows` to
    # people; null before the first full pass.
    served = models.JSONField(null=True, editable=False)

    # When it is due, and who works on it.
    due_at = models.DateTimeField(editable=False)
    # When the register last changed something that its cluster may have to be told.
    nudged_at = models.DateTimeField(null=True, editable=False)
    leased_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    leased_until = models.DateTimeField(null=True, editable=False)
    fence = models.BigIntegerField(default=0, editable=False)
    # Who watches it, as long as that Watcher lives; by kind, up to which version it was taken in.
    watched_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    positions = models.JSONField(default=dict, editable=False)

    class Meta:
        ordering = ["cluster__name"]
        permissions = [("reconcile", "Can have a cluster reconciled at once")]
        constraints = [
            models.UniqueConstraint(
                fields=["identity"],
                condition=~Q(identity=""),
                name="cluster_registered_once",
                violation_error_code="same_cluster",
            ),
            models.CheckConstraint(
                name="an_observed_cluster_has_no_managed_resources",
                condition=~Q(mode=Mode.OBSERVED) | Q(managed_resources=[]),
            ),
        ]
        indexes = [
            models.Index(fields=["due_at"], condition=Q(paused=False), name="connection_due"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster} at {self.server}"

    def manages(self, managed_resource: ManagedResource) -> bool:
        """Whether this is written to the cluster."""
        return self.mode == Mode.MANAGED and managed_resource in self.managed_resources


class Watcher(models.Model):
    """A process that watches clusters; it is dead when it has not been seen for some seconds."""

    name = models.CharField(max_length=200, unique=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
