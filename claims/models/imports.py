from typing import ClassVar

from django.db import models
from django.utils.translation import gettext_lazy as _
from django_stubs_ext import StrOrPromise

from claims.models.networks import Network
from pools.models import Cluster
from pools.models.imports import Import, ImportManager, ImportRow, in_json


class ImportTarget(models.TextChoices):
    """Objects that an import creates."""

    IPPOOL = "ippool", _("IPPool entries")
    IPAMCLAIMS = "ipamclaims", _("IPAMClaims")


class VMRow(ImportRow):
    """A network interface of a VM in an import; its object is an entry or an IPAMClaim, as the import says.

    `source_mac` and `source_ips` are the strings of the source; `mac` and `ips` are the parsed values for the row's
    network.
    """

    source_vm = in_json("texts", "vm", "")
    source_id = in_json("texts", "vm_id", "")
    source_mac = in_json("texts", "mac", "")
    source_ips = in_json("texts", "ips", [])
    source_namespace = in_json("texts", "namespace", "")
    port_group = in_json("texts", "port_group", "")
    note = in_json("texts", "note", "")
    file_problems = in_json("texts", "problems", [])
    refused = in_json("texts", "refused", False)  # by them
    network_id = in_json("values", "network")
    vm = in_json("values", "vm", "")
    namespace = in_json("values", "namespace", "")
    mac = in_json("values", "mac")
    ips = in_json("values", "ips", [])
    claim_name = in_json("values", "claim_name", "")

    class Meta:
        proxy = True
        default_permissions = ()


class VMImport(Import):
    """An import of a file, list or form of VMs.

    `network` and `namespace` apply to rows whose port group is not in `mapping` (`{port group:
    {"network": id, "namespace"}}`, of a new import also `{port group: id}`). Without a network they use that of their
    name, or that of the last import.
    """

    KIND: ClassVar[str] = "vm"
    ROW = VMRow
    target = in_json("options", "target", ImportTarget.IPPOOL.value)
    network_id = in_json("options", "network")
    namespace = in_json("options", "namespace", "")
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
