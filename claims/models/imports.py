from __future__ import annotations

from typing import Any, ClassVar

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from claims.models.fields import MACField
from claims.models.ippools import Entry
from claims.models.networks import Network
from claims.models.workloads import IPAMClaim
from pools.models import Cluster
from pools.models.imports import Import, ImportManager, RowStatus, option


class ImportTarget(models.TextChoices):
    """Objects that an import creates."""

    IPPOOL = "ippool", _("IPPool entries")
    IPAMCLAIMS = "ipamclaims", _("IPAMClaims")


def _unbound(to: type[models.Model]) -> Any:
    """Return a foreign key without a database constraint, so that bulk deletes do not check it."""
    return models.ForeignKey(
        to, models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )


class VMImport(Import):
    """An import of a file, list or form of VMs.

    `network` and `namespace` apply to rows whose port group is not in `mapping` (`{port group:
    {"network": id, "namespace"}}`).
    """

    KIND: ClassVar[str] = "vm"
    target = option("target", ImportTarget.IPPOOL.value)
    network_id = option("network")
    namespace = option("namespace", "")
    objects: ClassVar[ImportManager] = ImportManager()

    _network: Network | None = None  # as it was read

    class Meta:
        proxy = True
        verbose_name = _("VM import")
        verbose_name_plural = _("VM imports")
        default_permissions = ("add", "change", "view")

    def get_target_display(self) -> StrOrPromise:
        return ImportTarget(self.target).label

    @property
    def network(self) -> Network | None:
        """The network; None without one, and if it was deleted since."""
        if self._network is None or self._network.pk != self.network_id:
            networks = Network.objects.select_related("cluster").filter(pk=self.network_id or 0)
            self._network = networks.first()
        return self._network

    @network.setter
    def network(self, network: Network | None) -> None:
        self._network, self.network_id = network, None if network is None else network.pk


class ImportRow(models.Model):
    """A network interface of a VM in an import: the values of the source and the resulting values.

    `source_mac` and `source_ips` are the strings of the source, or a user's correction of them; `mac`
    and `ips` are the parsed values for the row's network. `problems` were found while reading;
    `reasons` are these and the conflicts with the register; each `[{"code", "message"}]`. `entry` or
    `claim` is the object of the row: it existed before (`before` are its former values), or the commit
    created it.
    """

    # Without a constraint, which would be checked for each of a hundred thousand rows. Only the worker
    # with the import's lock writes rows.
    vm_import = models.ForeignKey(
        VMImport, models.CASCADE, related_name="vm_rows", db_constraint=False, db_index=False
    )
    number = models.PositiveIntegerField()  # counts from 1 in the import
    row = models.PositiveIntegerField()  # its position in the file
    sheet = models.CharField(max_length=64, blank=True, default="")
    source_vm = models.CharField(max_length=300, blank=True, default="")
    source_mac = models.CharField(max_length=300, blank=True, default="")
    source_ips = ArrayField(models.CharField(max_length=300), default=list, blank=True)
    source_namespace = models.CharField(max_length=300, blank=True, default="")
    port_group = models.CharField(max_length=300, blank=True, default="")
    note = models.CharField(max_length=500, blank=True, default="")
    network = _unbound(Network)
    vm = models.CharField("VM", max_length=253, blank=True, default="")
    namespace = models.CharField(max_length=253, blank=True, default="")
    mac = MACField(null=True, blank=True)
    ips = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    claim_name = models.CharField(max_length=253, blank=True, default="")
    usable = models.BooleanField(default=True)  # False if the row was refused while reading
    # Problems of the file itself, `[{"field", "code", "message"}]`, and whether they refuse the row.
    found = models.JSONField(default=list, blank=True)
    found_refused = models.BooleanField(default=False)
    problems = models.JSONField(default=list, blank=True)
    status = models.CharField(max_length=9, choices=RowStatus, default=RowStatus.NEW)
    reasons = models.JSONField(default=list, blank=True)
    entry = _unbound(Entry)
    claim = _unbound(IPAMClaim)
    before = models.JSONField(null=True, blank=True)
    skipped = models.BooleanField(default=False, db_default=False)
    corrected = models.BooleanField(default=False, db_default=False)
    written = models.BooleanField(default=False, db_default=False)

    class Meta:
        verbose_name = _("import row")
        ordering = ["vm_import_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["vm_import", "number"], name="import_row_number"),
        ]
        indexes = [
            models.Index(fields=["vm_import", "status", "number"], name="import_row_status"),
        ]

    def __str__(self) -> str:
        return f"row {self.number} of import {self.vm_import_id}"


class PortGroup(models.Model):
    """The network and namespace to which a port group was last mapped."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="port_groups")
    name = models.CharField(max_length=300)
    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="port_groups")
    namespace = models.CharField(max_length=63, blank=True, default="")

    class Meta:
        verbose_name = _("port group")
        ordering = ["cluster__name", "name"]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "name"], name="port_group_name_unique"),
        ]

    def __str__(self) -> str:
        return self.name


class Wave(models.Model):
    """A migration wave: VMs that are migrated together."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="waves")
    name = models.CharField(max_length=63)
    planned_at = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("wave")
        verbose_name_plural = _("waves")
        ordering = ["cluster__name", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"],
                name="wave_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("The cluster already has a wave with this name."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class WaveVM(models.Model):
    """A VM of a wave, by its name in the cluster; the VM need not exist yet."""

    wave = models.ForeignKey(Wave, on_delete=models.CASCADE, related_name="vms", db_index=False)
    namespace = models.CharField(max_length=63, blank=True, default="")
    vm = models.CharField("VM", max_length=253)
    source_vm = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        verbose_name = _("wave VM")
        verbose_name_plural = _("wave VMs")
        ordering = ["namespace", "vm"]
        constraints = [
            models.UniqueConstraint(fields=["wave", "namespace", "vm"], name="wave_vm_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.vm}" if self.namespace else self.vm
