from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from claims.models.fields import MACField
from claims.models.networks import Network


class WorkloadKind(models.TextChoices):
    """Kind of a workload; launcher pods belong to the workload of their VM.

    A TEMPLATE does not run: it is an interface of a VirtualMachine's template that names a MAC address, which
    the VM has from its next start on.
    """

    VMI = "vmi", _("VM")
    POD = "pod", _("pod")
    TEMPLATE = "vm", _("VM template")


class Workload(models.Model):
    """A running VM or pod on a network, with the MAC and the addresses observed in the cluster.

    Each attachment of a VMI, or of a pod that belongs to no VM, has one row, and so has each interface of a
    VM's template with a MAC address, whether the VM runs or not. `pods` lists the launcher
    pods of a VMI (two during a live migration). `vm_uid` is that of the VirtualMachine, which outlives
    its VMIs.
    """

    network = models.ForeignKey(Network, on_delete=models.CASCADE, related_name="workloads")
    kind = models.CharField(max_length=4, choices=WorkloadKind)
    namespace = models.CharField(max_length=253)
    name = models.CharField(max_length=253)  # of the VM, or of the pod
    uid = models.CharField(max_length=64)  # of the VMI, the pod or the VirtualMachine
    vm_uid = models.CharField(max_length=64, blank=True, default="")
    interface = models.CharField(max_length=253, blank=True, default="")
    mac = MACField(null=True, blank=True)
    ips = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    node = models.CharField(max_length=253, blank=True, default="")
    phase = models.CharField(max_length=32, blank=True, default="")
    pods = ArrayField(models.CharField(max_length=253), default=list, blank=True)
    since = models.DateTimeField()

    class Meta:
        verbose_name = _("workload")
        verbose_name_plural = _("workloads")
        ordering = ["network_id", "namespace", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["network", "kind", "uid", "interface"], name="workload_unique"
            ),
        ]
        indexes = [
            models.Index(fields=["namespace", "name"], name="workload_name"),
            models.Index(fields=["name"], name="workload_name_alone"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"
