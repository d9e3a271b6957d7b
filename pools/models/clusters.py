"""Clusters, their address spaces and connections, the processes that watch them, and recovery mode."""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField

from pools.models.attributes import Attributed, attribute_indexes
from pools.models.fields import HostAddressField

DEFAULT_GATEWAY = "fe80::1"  # the host's side of every instance's link
DEFAULT_MTU = 1420  # WireGuard over 1500 bytes of Ethernet, IPv6 outside


class Cluster(Attributed):
    """A Kubernetes cluster or fleet whose addresses are registered."""

    name = models.CharField(max_length=253, unique=True)
    cluster_prefix = CidrAddressField(
        null=True,
        blank=True,
        help_text=_("IPv6, at least /64; divided into node and instance prefixes."),
    )
    instance_gateway = HostAddressField(default=DEFAULT_GATEWAY)
    instance_mtu = models.PositiveIntegerField(default=DEFAULT_MTU)
    instance_dns = ArrayField(HostAddressField(), default=list, blank=True)
    description = models.CharField(max_length=500, blank=True, default="")
    version = models.PositiveBigIntegerField(default=1, editable=False)  # incremented by changes
    created_at = models.DateTimeField(auto_now_add=True)
    # SHA-256 (hex) of the key in the URL that its API server calls for admission reviews; "" without one.
    webhook_digest = models.CharField(max_length=64, blank=True, default="", editable=False)
    webhook_key_made_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("cluster")
        verbose_name_plural = _("clusters")
        ordering = ["name"]
        constraints = [
            models.UniqueConstraint(
                fields=["webhook_digest"],
                condition=~Q(webhook_digest=""),
                name="webhook_digest_unique",
            ),
        ]
        indexes = attribute_indexes("cluster")

    def __str__(self) -> str:
        return self.name


class AddressSpace(models.Model):
    """The scope in which an address is unique: a cluster, or one isolated VM network of it."""

    OWN = ""  # the name of a cluster's own space

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="spaces")
    name = models.CharField(max_length=253, blank=True, default=OWN)

    class Meta:
        ordering = ["cluster_id", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="space_name_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}" if self.name else str(self.cluster)


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


class Mode(models.TextChoices):
    """Whether Cadastre writes to the cluster."""

    OBSERVED = "observed", _("observed")  # Cadastre never writes to the cluster
    MANAGED = "managed", _("managed")  # Cadastre writes the managed resources


class ManagedResource(models.TextChoices):
    """A resource that Cadastre writes to a managed cluster; each one is enabled separately."""

    POOLS = "pools", "CiliumPodIPPools"
    POD_CIDRS = "pod-cidrs", _("PodCIDRs of CiliumNodes")
    CLAIMS = "claims", _("status of IPAMClaims")
    IPPOOL_STATUS = "ippool-status", _("status of IPPools")
    CLUSTER_API = "cluster-api", _("addresses for claims of Cluster API")
    CONVERSION = "conversion", _("v2 objects for pools of a separate v2alpha1 store")


class Connection(models.Model):
    """The connection to a cluster's API server: credentials, mode, status of the sync runs and lease.

    `sealed` contains server, CA and credentials, encrypted (pools/platform/outbound/secrets.py).
    `identity` is the uid of the namespace kube-system, stored at the first contact, because another
    cluster may get the same address later. The lease (`leased_by`, `leased_until`, `fence`) allows one
    worker at a time to work on the cluster; each of its transactions verifies the fence.
    """

    cluster = models.OneToOneField(Cluster, on_delete=models.CASCADE, related_name="connection")
    server = models.CharField(max_length=500)
    sealed = models.TextField(editable=False)
    in_cluster = models.BooleanField(default=False)  # uses the credentials of Cadastre's own pod
    mode = models.CharField(max_length=8, choices=Mode, default=Mode.OBSERVED)
    managed_resources = ArrayField(
        models.CharField(max_length=16, choices=ManagedResource), default=list, blank=True
    )
    paused = models.BooleanField(default=False)
    identity = models.CharField(max_length=64, blank=True, default="", editable=False)
    version = models.CharField(max_length=64, blank=True, default="", editable=False)
    # When the token or the client certificate expires, if it contains that time.
    expires_at = models.DateTimeField(null=True, editable=False)

    # The results of the last sync runs, from which the status on pages is derived.
    tried_at = models.DateTimeField(null=True, editable=False)
    succeeded_at = models.DateTimeField(null=True, editable=False)  # a full sync run of all kinds
    error_code = models.CharField(max_length=63, blank=True, default="", editable=False)
    error = models.CharField(max_length=500, blank=True, default="", editable=False)
    failures = models.PositiveIntegerField(default=0, editable=False)  # in a row
    # Objects that the last full sync run, or a watch event since, could not ingest or write.
    failed_objects = models.PositiveIntegerField(default=0, db_default=0, editable=False)
    # By kind: the `api_version` that is read ("" if it is not served), and what it `shows` to people;
    # null before the first full sync run.
    served = models.JSONField(null=True, editable=False)

    # When the next sync run is due, and which worker has the lease.
    due_at = models.DateTimeField(editable=False)
    # When the register last changed something that may have to be written to the cluster.
    nudged_at = models.DateTimeField(null=True, editable=False)
    leased_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    leased_until = models.DateTimeField(null=True, editable=False)
    fence = models.BigIntegerField(default=0, editable=False)
    # The Watcher that follows the cluster while it is alive; by kind, the resourceVersion ingested last.
    watched_by = models.CharField(max_length=200, blank=True, default="", editable=False)
    positions = models.JSONField(default=dict, editable=False)

    class Meta:
        verbose_name = _("connection")
        verbose_name_plural = _("connections")
        ordering = ["cluster__name"]
        permissions = [("reconcile", "Can start a sync run of a cluster")]
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
        """Return True if Cadastre writes this resource to the cluster."""
        return self.mode == Mode.MANAGED and managed_resource in self.managed_resources


class Watcher(models.Model):
    """A process that watches clusters; it is dead if `seen_at` is older than some seconds."""

    name = models.CharField(max_length=200, unique=True)
    seen_at = models.DateTimeField()

    def __str__(self) -> str:
        return self.name
