from __future__ import annotations

from django.db import models
from django.db.models import Q

from claims.models.fields import MACField
from claims.models.ipamclaims import IPAMClaim
from claims.models.ippools import Entry
from claims.models.networks import Network
from claims.models.workloads import Workload
from pools.models.fields import HostAddressField


class IndexEntry(models.Model):
    """A MAC address or an IP address of a network that an entry, a claim or a workload names.

    The table is the address index over all three: it finds duplicates, and looks up a MAC or an
    address. An owner has one row for each of its addresses, or one row with a null address.
    Only claims/address_index/index.py writes rows, in the transaction that writes their owner.

    `duplicate_mac` and `duplicate_ip` mark a conflict with another index entry of the network
    (claims/address_index/conflicts.py defines conflicts).
    """

    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="index_entries")
    entry = models.ForeignKey(
        Entry, on_delete=models.CASCADE, null=True, related_name="index_entries"
    )
    claim = models.ForeignKey(
        IPAMClaim, on_delete=models.CASCADE, null=True, related_name="index_entries"
    )
    workload = models.ForeignKey(
        Workload, on_delete=models.CASCADE, null=True, related_name="index_entries"
    )
    address = HostAddressField(null=True)
    mac = MACField(null=True)
    namespace = models.CharField(max_length=253, blank=True, default="")
    vm = models.CharField(max_length=253, blank=True, default="")
    # False for a claim that only requests the address and has not been granted it yet.
    holds = models.BooleanField(default=True, db_default=True)
    duplicate_mac = models.BooleanField(default=False, db_default=False)
    duplicate_ip = models.BooleanField(default=False, db_default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                name="index_entry_has_one_owner",
                condition=Q(entry__isnull=False, claim=None, workload=None)
                | Q(entry=None, claim__isnull=False, workload=None)
                | Q(entry=None, claim=None, workload__isnull=False),
            ),
            models.CheckConstraint(
                name="index_entry_names_something",
                condition=Q(address__isnull=False) | Q(mac__isnull=False) | ~Q(vm=""),
            ),
        ]
        indexes = [
            models.Index(
                fields=["network", "address"],
                condition=Q(address__isnull=False),
                name="index_entry_address",
            ),
            models.Index(
                fields=["network", "mac"], condition=Q(mac__isnull=False), name="index_entry_mac"
            ),
            models.Index(
                fields=["network"],
                condition=Q(duplicate_mac=True) | Q(duplicate_ip=True),
                name="index_entry_duplicate",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.mac or '?'} {self.address or '?'}"
