"""Network containers: CIDRs of the address plan that group other CIDRs."""

from __future__ import annotations

from django.contrib.contenttypes.fields import GenericRelation
from django.db import models
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField

from pools.models.attributes import Attributed, attribute_indexes
from pools.models.clusters import AddressSpace, Cluster


class Container(Attributed):
    """A CIDR that is planned for some purpose and contains other CIDRs: containers, pools' CIDRs, prefixes.

    Nothing is allocated from it. Without an address space it belongs to the plan of the fleet, which has
    the CIDRs of all clusters.
    """

    space = models.ForeignKey(
        AddressSpace, on_delete=models.CASCADE, null=True, blank=True, related_name="containers"
    )
    cidr = CidrAddressField()
    name = models.CharField(max_length=253, blank=True, default="")
    description = models.CharField(max_length=500, blank=True, default="")
    version = models.PositiveBigIntegerField(default=1, editable=False)  # the ETag
    created_at = models.DateTimeField(auto_now_add=True)
    journal = GenericRelation("pools.JournalEntry")

    class Meta:
        verbose_name = _("network container")
        verbose_name_plural = _("network containers")
        ordering = ["cidr", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cidr", "space"],
                name="container_unique",
                nulls_distinct=False,
                violation_error_code="already_exists",
                violation_error_message=_(
                    "The address space already has a container of this CIDR."
                ),
            ),
        ]
        indexes = attribute_indexes("container")

    def __str__(self) -> str:
        return f"{self.cidr} {self.name}".strip()

    @property
    def cluster(self) -> Cluster | None:
        """The cluster of the address space; None in the plan of the fleet."""
        return self.space.cluster if self.space else None
