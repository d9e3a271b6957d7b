from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from claims.models.fields import MACField
from claims.models.networks import Network
from pools.models import Cluster


class EntrySource(models.TextChoices):
    """Where an entry came from."""

    HAND = "hand", _("manual")
    API = "api", "REST"
    CLUSTER = "cluster", _("IPPool of the cluster")
    IMPORT = "import", _("import")
    ADOPTED = "adopted", _("adopted from a running workload")
    REQUEST = "request", _("requested by a VM owner")


class IPPool(models.Model):
    """An IPPool: the addresses of each MAC address on one logical network.

    This is the centralized form of the enhancement proposal. Each network of a cluster has at most
    one. `conditions` are those of the object's status (claims/core/ippool.py), with their transition
    times. `problems` are the parts of the cluster's object that are not valid:
    `[{"mac", "code", "message"}]`.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="ippools")
    network = models.OneToOneField(
        Network,
        on_delete=models.RESTRICT,
        related_name="ippool",
        error_messages={"unique": _("The network already has an IPPool.")},
    )
    name = models.CharField(max_length=253)
    conditions = models.JSONField(default=list, blank=True, editable=False)
    problems = models.JSONField(default=list, blank=True, editable=False)
    duplicate_macs = models.PositiveIntegerField(
        default=0, editable=False
    )  # number of values, not of entries
    duplicate_ips = models.PositiveIntegerField(default=0, editable=False)
    uid = models.CharField(max_length=64, blank=True, default="", editable=False)
    # True if the row mirrors the cluster's object: observed there, and not edited here since.
    follows_cluster = models.BooleanField(default=False, editable=False)
    # Incremented by every change of entries. `agreed` holds the object's uid, its resourceVersion and
    # the version here when the object and the row were last equal.
    version = models.PositiveBigIntegerField(default=1, editable=False)
    agreed = models.CharField(max_length=160, blank=True, default="", editable=False)
    gone_at = models.DateTimeField(
        null=True, blank=True, editable=False
    )  # when the object was deleted
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
                violation_error_message=_("The cluster already has an IPPool with this name."),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"


class Entry(models.Model):
    """A MAC entry: a MAC address of an IPPool and its addresses.

    An address is a host address with a prefix length, `10.0.0.5/24`. Duplicates can be stored, because
    people must see them; `claims.models.IndexEntry` marks them.
    """

    ippool = models.ForeignKey(IPPool, on_delete=models.CASCADE, related_name="entries")
    mac = MACField()
    ips = ArrayField(models.CharField(max_length=64))
    vm = models.CharField("VM", max_length=253, blank=True, default="")
    namespace = models.CharField(_("namespace"), max_length=253, blank=True, default="")
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
            models.Index(fields=["vm", "-id"], name="entry_vm_alone"),
        ]

    def __str__(self) -> str:
        return f"{self.mac} {', '.join(self.ips)}"
