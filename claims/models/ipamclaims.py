from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from claims.models.fields import MACField
from claims.models.networks import Network
from pools.models import Cluster


class IPAMClaim(models.Model):
    """An IPAMClaim (k8s.cni.cncf.io/v1alpha1): addresses of a VM's interface that outlive its pods.

    `mac` and `ips_requested` are the requests of the enhancement proposal's decentralized form. `ips`,
    `owner_pod` and `conditions` are the status: as last observed in the cluster, or as allocated here if
    Cadastre writes the status (managed resource `claims`). Addresses are strings with a prefix length.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="ipamclaims")
    network = models.ForeignKey(Network, on_delete=models.RESTRICT, related_name="claims")
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    interface = models.CharField(max_length=253, blank=True, default="")
    mac = MACField(null=True, blank=True)
    ips_requested = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    vm = models.CharField("VM", max_length=253, blank=True, default="")
    vm_uid = models.CharField(max_length=64, blank=True, default="")
    ips = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    owner_pod = models.CharField(max_length=253, blank=True, default="")
    conditions = models.JSONField(default=list, blank=True)
    finalizers = ArrayField(models.CharField(max_length=317), default=list, blank=True)
    deleted_at = models.DateTimeField(null=True, blank=True)  # metadata.deletionTimestamp
    uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    follows_cluster = models.BooleanField(default=False, editable=False)
    # Set when the object is deleted. The row is kept until its blocks are released.
    gone_at = models.DateTimeField(null=True, blank=True, editable=False)
    note = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("IPAMClaim")
        ordering = ["cluster__name", "namespace", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "namespace", "name"],
                name="ipamclaim_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("The namespace already has an IPAMClaim with this name."),
            ),
        ]
        # Not beginning with the cluster, because pages search in all clusters.
        indexes = [
            models.Index(fields=["vm", "namespace", "cluster"], name="ipamclaim_vm"),
            models.Index(fields=["namespace", "name"], name="ipamclaim_namespace"),
            models.Index(fields=["name"], name="ipamclaim_name"),
            # The few without an address: pending, refused.
            models.Index(fields=["id"], condition=Q(ips=[]), name="ipamclaim_without_ips"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
