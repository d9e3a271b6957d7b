from __future__ import annotations

from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from pools.models import Cluster, Pool


class NetworkKind(models.TextChoices):
    """What made the network; empty when only an IPPool or a claim names it."""

    CUDN = "cudn", "ClusterUserDefinedNetwork"
    UDN = "udn", "UserDefinedNetwork"
    NAD = "nad", "NetworkAttachmentDefinition"  # made by hand, without a UDN
    UNKNOWN = "", _("not seen in the cluster")


def _texts(longest: int = 64) -> Any:
    return ArrayField(models.CharField(max_length=longest), default=list, blank=True)


class Network(models.Model):
    """A logical network of OVN-Kubernetes in one cluster: what a NAD's `spec.config` calls `name`.

    Addresses are texts in canonical form. `default_gateways` are those that were configured; without
    any the first address of each subnet is the gateway (claims/core/networks/udn.py). `pool` has the
    subnets, in an address space of the network's own; there is none without subnets. A network that
    an IPPool or a claim names before it is seen has a row of kind UNKNOWN, so that nothing that
    speaks of it is lost.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="networks")
    name = models.CharField("logical network name", max_length=253)
    kind = models.CharField(
        max_length=4, choices=NetworkKind, blank=True, default=NetworkKind.UNKNOWN
    )
    object_name = models.CharField(max_length=253, blank=True, default="")  # of the (C)UDN or NAD
    namespace = models.CharField(max_length=253, blank=True, default="")  # of a UDN or NAD
    topology = models.CharField(max_length=16, blank=True, default="")  # layer2, layer3, localnet
    role = models.CharField(max_length=16, blank=True, default="")  # primary, secondary
    ipam_mode = models.CharField(max_length=16, blank=True, default="")  # Enabled, Disabled
    lifecycle = models.CharField(max_length=16, blank=True, default="")  # Persistent or ""
    mtu = models.PositiveIntegerField(null=True, blank=True)
    subnets = _texts()
    default_gateways = _texts()
    reserved_subnets = _texts()
    infrastructure_subnets = _texts()
    exclude_subnets = _texts()
    join_subnets = _texts()
    namespace_selector = models.JSONField(null=True, blank=True)  # of a ClusterUserDefinedNetwork
    conditions = models.JSONField(default=list, blank=True)  # of the (C)UDN's status
    uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    pool = models.OneToOneField(
        Pool, on_delete=models.SET_NULL, null=True, blank=True, related_name="network"
    )
    # Taken in from the cluster: what its object says, it says. False: made here, by hand.
    follows_cluster = models.BooleanField(default=False, editable=False)
    # Made here, and to be written to the cluster (a managed one) by reconcile.
    applied = models.BooleanField(default=False)
    gone_at = models.DateTimeField(null=True, blank=True, editable=False)  # its object is deleted
    description = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("network")
        ordering = ["cluster__name", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"],
                name="network_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("The cluster has a network of this name."),
            ),
        ]
        permissions = [
            ("view_every_namespace", "Can see the VM networks of all namespaces"),
            ("request_address", "Can request addresses for VMs of their namespaces"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class NAD(models.Model):
    """A NetworkAttachmentDefinition through which a namespace uses a network."""

    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="nads")
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)
    uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    role = models.CharField(max_length=16, blank=True, default="")
    allow_persistent_ips = models.BooleanField(default=False)
    subnets = _texts()  # of its own config; those of the network unless somebody edits NADs
    config = models.JSONField(default=dict, blank=True)

    class Meta:
        verbose_name = _("network attachment definition")
        ordering = ["namespace", "name"]
        constraints = [
            models.UniqueConstraint(fields=["network", "namespace", "name"], name="nad_unique"),
        ]
        indexes = [models.Index(fields=["namespace", "name"], name="nad_namespace")]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
