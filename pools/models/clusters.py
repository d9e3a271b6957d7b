"""Clusters and their address spaces, and recovery mode, in which nothing is allocated until they were listed."""

from __future__ import annotations

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
