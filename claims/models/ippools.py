from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from claims.models.fields import MACField
from claims.models.networks import Network
from pools.models import Cluster


class EntrySource(models.TextChoices):
    """How an entry came here."""

    HAND = "hand", _("by hand")
    API = "api", "REST"
    CLUSTER = "cluster", _("the cluster's IPPool")
    IMPORT = "import", "import"
    ADOPTED = "adopted", _("adopted from what runs")
    REQUEST = "request", _("requested by a VM owner")


class IPPool(models.Model):
    """Which MAC address has which addresses on one logical network.

    The centralized form of the enhancement proposal.

    One for each network of a cluster. `conditions` are those of its status (claims/core/ippool.py),
    kept with their transition times. `problems` are the parts of the cluster's object that could not
    be taken in: `[{"mac", "code", "message"}]`.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="ippools")
    network = models.OneToOneField(
        Network,
        on_delete=models.RESTRICT,
        related_name="ippool",
        error_messages={"unique": _("The network has an IPPool already.")},
    )
    name = models.CharField(max_length=253)
    conditions = models.JSONField(default=list, blank=True, editable=False)
    problems = models.JSONField(default=list, blank=True, editable=False)
    duplicate_macs = models.PositiveIntegerField(default=0, editable=False)  # values, not entries
    duplicate_ips = models.PositiveIntegerField(default=0, editable=False)
    uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    # Taken in from the cluster and changed by nobody here since: what its object says, it says.
    follows_cluster = models.BooleanField(default=False, editable=False)
    # Rises with every change of entries; `agreed` is the object's uid, resourceVersion and this
    # version when both last said the same.
    version = models.PositiveBigIntegerField(default=1, editable=False)
    agreed = models.CharField(max_length=160, blank=True, default="", editable=False)
    gone_at = models.DateTimeField(null=True, blank=True, editable=False)  # its object is deleted
    note = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("IPPool")
        verbose_name_plural = _("IPPools")
        ordering = ["cluster__name", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"],
                name="ippool_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("The cluster has an IPPool of this name."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class Entry(models.Model):
    """One MAC address of an IPPool and its addresses, `10.0.0.5/24`: host address and prefix length.

    Duplicates are allowed, because people must see them; `claims.models.Place` finds them.
    """

    ippool = models.ForeignKey(IPPool, on_delete=models.CASCADE, related_name="entries")
    mac = MACField()
    ips = ArrayField(models.CharField(max_length=64))
    vm = models.CharField("VM", max_length=253, blank=True, default="")
    namespace = models.CharField(max_length=253, blank=True, default="")
    source = models.CharField(max_length=8, choices=EntrySource, default=EntrySource.HAND)
    note = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("MAC entry")
        verbose_name_plural = _("MAC entries")
        ordering = ["ippool_id", "mac", "id"]
        indexes = [
            models.Index(fields=["ippool", "mac", "id"], name="entry_mac"),
            models.Index(fields=["namespace", "vm"], name="entry_vm"),
        ]

    def __str__(self) -> str:
        return f"{self.mac} {', '.join(self.ips)}"
