from __future__ import annotations

from django.db import models
from django.db.models import Q

from claims.models.fields import MACField
from claims.models.ipamclaims import IPAMClaim
from claims.models.ippools import Entry
from claims.models.networks import Network
from claims.models.workloads import Workload
from pools.models.fields import HostAddressField


class Place(models.Model):
    """One place that names a MAC address or an address of a network: an entry, a claim, a workload.

    The index over all three in which duplicates are found, and in which an address or a MAC is
    looked up. One row for each address of its owner, one with a null address for an owner without.
    Written only by claims/address_index/index.py, in the transaction that writes its owner.

    `duplicate_mac` and `duplicate_ip` say that another place of the network contradicts this one
    (claims/address_index/duplicates.py says when).
    """

    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="places")
    entry = models.ForeignKey(Entry, on_delete=models.CASCADE, null=True, related_name="places")
    claim = models.ForeignKey(IPAMClaim, on_delete=models.CASCADE, null=True, related_name="places")
    workload = models.ForeignKey(
        Workload, on_delete=models.CASCADE, null=True, related_name="places"
    )
    address = HostAddressField(null=True)
    mac = MACField(null=True)
    namespace = models.CharField(max_length=253, blank=True, default="")
    vm = models.CharField(max_length=253, blank=True, default="")
    # Whether it has the address, rather than only asks for it (a claim that is not granted yet).
    holds = models.BooleanField(default=True, db_default=True)
    duplicate_mac = models.BooleanField(default=False, db_default=False)
    duplicate_ip = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="place_has_one_owner",
                condition=Q(entry__isnull=False, claim=None, workload=None)
                | Q(entry=None, claim__isnull=False, workload=None)
                | Q(entry=None, claim=None, workload__isnull=False),
            ),
            models.CheckConstraint(
                name="place_names_something",
                condition=Q(address__isnull=False) | Q(mac__isnull=False) | ~Q(vm=""),
            ),
        ]
        indexes = [
            models.Index(
                fields=["network", "address"],
                condition=Q(address__isnull=False),
                name="place_address",
            ),
            models.Index(
                fields=["network", "mac"], condition=Q(mac__isnull=False), name="place_mac"
            ),
            models.Index(
                fields=["network"],
                condition=Q(duplicate_mac=True) | Q(duplicate_ip=True),
                name="place_duplicate",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mac or '?'} {self.address or '?'}"
