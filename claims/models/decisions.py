from __future__ import annotations

from django.db import models
from django.db.models.functions import Upper
from django.utils.translation import gettext_lazy as _

from pools.models import Cluster

# Fields that the list searches for a whole value, in any case.
SEARCHED = ("vm", "namespace", "code", "network", "name")


class Decision(models.Model):
    """A decision of the admission webhook about one object, with its reason.

    Dry runs are not recorded. Old decisions are deleted.
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="decisions")
    at = models.DateTimeField()
    path = models.CharField(max_length=32)  # mutate-pods, mutate-vms, validate-ippools
    operation = models.CharField(max_length=8)
    namespace = models.CharField(max_length=253, blank=True, default="")
    name = models.CharField(max_length=253, blank=True, default="")
    vm = models.CharField(max_length=253, blank=True, default="")
    network = models.CharField(max_length=253, blank=True, default="")
    code = models.CharField(max_length=63)  # patched, no_entry, not_a_vm, …
    message = models.CharField(_("message"), max_length=1000, blank=True, default="")
    allowed = models.BooleanField(default=True)
    patch = models.JSONField(null=True, blank=True)
    milliseconds = models.FloatField(default=0)

    class Meta:
        verbose_name = _("decision")
        verbose_name_plural = _("decisions")
        ordering = ["-id"]
        indexes = [
            models.Index(fields=["cluster", "-id"], name="decision_cluster"),
            models.Index(fields=["cluster", "namespace", "vm"], name="decision_vm"),
            models.Index(fields=["at"], name="decision_at"),
            *(models.Index(Upper(field), name=f"decision_{field}_any_case") for field in SEARCHED),
        ]

    def __str__(self) -> str:
        return f"{self.path} {self.namespace}/{self.name}: {self.code}"
