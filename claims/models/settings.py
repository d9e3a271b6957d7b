from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from pools.models import Cluster


class Annotation(models.TextChoices):
    """The annotation that the mutating webhook writes."""

    DEFAULT_NETWORK = (
        "default-network",
        _("v1.multus-cni.io/default-network on pods (enhancement proposal)"),
    )
    ADDRESSES = "addresses", _("network.kubevirt.io/addresses on VMs (ipam-extensions)")


class NetworkSettings(models.Model):
    """How the VMs of a cluster receive their addresses."""

    cluster = models.OneToOneField(
        Cluster, on_delete=models.CASCADE, related_name="network_settings"
    )
    annotation = models.CharField(
        max_length=16, choices=Annotation, default=Annotation.DEFAULT_NETWORK
    )
    # Namespace and name in the annotation's element for the default network; OVN-Kubernetes checks both.
    default_nad_namespace = models.CharField(max_length=63, default="ovn-kubernetes")
    default_nad_name = models.CharField(max_length=253, default="default")

    class Meta:
        verbose_name = _("settings of VM networks")
        verbose_name_plural = _("settings of VM networks")

    def __str__(self) -> str:
        return str(self.cluster)
