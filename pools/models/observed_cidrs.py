"""Addresses that objects of clusters use besides pools: Services, nodes, load balancers, egress and others."""

from __future__ import annotations

from django.contrib.postgres.indexes import GistIndex, OpClass
from django.db import models
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField

from pools.core.observed.uses import Role
from pools.models.clusters import AddressSpace, Cluster

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
    read from the cluster only, and nobody changes them here.
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
