from __future__ import annotations

from typing import Any

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from claims.models.fields import MACField
from claims.models.ipamclaims import IPAMClaim
from claims.models.ippools import Entry
from claims.models.networks import Network
from pools.models import Cluster


class ImportTarget(models.TextChoices):
    """What an import writes."""

    IPPOOL = "ippool", _("IPPool entries")
    IPAMCLAIMS = "ipamclaims", "IPAMClaims"


class Status(models.TextChoices):
    """How far an import is; those after `drafted` say what became of it."""

    QUEUED = "queued", "queued"
    DRAFTING = "drafting", _("being read")
    DRAFTED = "drafted", _("to be looked at")
    COMMITTING = "committing", _("being written")
    COMMITTED = "committed", "written"
    UNDONE = "undone", "undone"
    CANCELLED = "cancelled", "cancelled"
    FAILED = "failed", "failed"


class RowVerdict(models.TextChoices):
    """What a commit would do with a row, or what it did."""

    NEW = "new", "new"
    CHANGED = "changed", "changed"
    UNCHANGED = "unchanged", "unchanged"
    CONFLICT = "conflict", "conflict"
    REFUSED = "refused", "refused"
    SKIPPED = "skipped", "skipped"  # by a person


def _unbound(to: type[models.Model]) -> Any:
    """A reference that keeps nothing from being deleted: bulk deletes do not ask for them."""
    return models.ForeignKey(
        to, models.DO_NOTHING, null=True, related_name="+", db_constraint=False, db_index=False
    )


class VMImport(models.Model):
    """One file, list or form of VMs: first a draft, then written, undone or thrown away.

    `network` and `namespace` are those of rows for which `mapping` (`{port group: {"network": id,
    "namespace"}}`) has none. `counts` are the rows by verdict, `left_out` what of the file is no row,
    by reason. `fence` and `leased_until` say who works on it (claims/imports/leases.py).
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="vm_imports")
    target = models.CharField(max_length=10, choices=ImportTarget, default=ImportTarget.IPPOOL)
    network = models.ForeignKey(
        Network, on_delete=models.SET_NULL, null=True, blank=True, related_name="vm_imports"
    )
    namespace = models.CharField(max_length=63, blank=True, default="")
    mapping = models.JSONField(default=dict, blank=True)
    format = models.CharField(max_length=32, blank=True, default="")
    file_name = models.CharField(max_length=255, blank=True, default="")
    status = models.CharField(max_length=10, choices=Status, default=Status.QUEUED)
    counts = models.JSONField(default=dict, blank=True)
    left_out = models.JSONField(default=dict, blank=True)
    notes = models.JSONField(default=list, blank=True)  # what was guessed: [{"code", "message"}]
    rows_total = models.PositiveIntegerField(null=True, blank=True)
    rows_done = models.PositiveIntegerField(default=0)
    commit_wanted = models.BooleanField(default=False)  # as soon as it is drafted
    skip_bad = models.BooleanField(default=False)  # of the commit that is wanted or was made
    cancel_wanted = models.BooleanField(default=False)
    undo_wanted = models.BooleanField(default=False, db_default=False)  # by a worker
    error_code = models.CharField(max_length=63, blank=True, default="")
    error = models.CharField(max_length=1000, blank=True, default="")
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.SET_NULL,
        null=True,
        blank=True,
        related_name="vm_imports",
    )
    # Only namespaces of the user's own memberships, and nothing of others is told.
    limited = models.BooleanField(default=False)
    actor = models.CharField(max_length=150, blank=True, default="")
    source = models.CharField(max_length=8, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    fence = models.PositiveBigIntegerField(default=0, editable=False)
    leased_until = models.DateTimeField(null=True, editable=False)
    tries = models.PositiveSmallIntegerField(default=0, editable=False)  # since it was last queued
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)  # of the work that is under way
    drafted_at = models.DateTimeField(null=True, blank=True)
    committed_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("import")
        ordering = ["-id"]
        indexes = [
            models.Index(
                fields=["leased_until"],
                condition=models.Q(status__in=["queued", "drafting", "committing"]),
                name="vm_import_due",
            ),
        ]

    def __str__(self) -> str:
        return f"import {self.pk}"


class ImportFile(models.Model):
    """What was uploaded, as long as it is not read: of the words `file`, `rows` or `text`."""

    vm_import = models.OneToOneField(VMImport, on_delete=models.CASCADE, related_name="file")
    kind = models.CharField(max_length=4, default="file")
    content = models.BinaryField()

    def __str__(self) -> str:
        return f"{self.kind} of import {self.vm_import_id}"


class ImportRow(models.Model):
    """One network interface of one VM in an import, as the source says it and as it would be.

    `source_mac` and `source_ips` are the source's texts, corrected by a person or not; `mac` and `ips`
    what was made of them for the row's network. `problems` were found while reading, `reasons` are
    these and what the register says; each `[{"code", "message"}]`. `entry` or `claim` is what the row
    speaks of: it is there already (`before` are its values then), or was made by the commit.
    """

    # Without a check for each of a hundred thousand rows; who writes them holds the import.
    vm_import = models.ForeignKey(
        VMImport, models.CASCADE, related_name="rows", db_constraint=False, db_index=False
    )
    number = models.PositiveIntegerField()  # 1, 2, … in the import
    row = models.PositiveIntegerField()  # in the file
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
    usable = models.BooleanField(default=True)  # False: refused by what was read
    # What the file itself has for problems, `[{"field", "code", "message"}]`, and whether it is unusable.
    found = models.JSONField(default=list, blank=True)
    found_refused = models.BooleanField(default=False)
    problems = models.JSONField(default=list, blank=True)
    verdict = models.CharField(max_length=9, choices=RowVerdict, default=RowVerdict.NEW)
    reasons = models.JSONField(default=list, blank=True)
    entry = _unbound(Entry)
    claim = _unbound(IPAMClaim)
    before = models.JSONField(null=True, blank=True)
    skipped = models.BooleanField(default=False, db_default=False)
    corrected = models.BooleanField(default=False, db_default=False)
    written = models.BooleanField(default=False, db_default=False)

    class Meta:
        verbose_name = _("row of an import")
        ordering = ["vm_import_id", "number"]
        constraints = [
            models.UniqueConstraint(fields=["vm_import", "number"], name="import_row_number"),
        ]
        indexes = [
            models.Index(fields=["vm_import", "verdict", "number"], name="import_row_verdict"),
        ]

    def __str__(self) -> str:
        return f"row {self.number} of import {self.vm_import_id}"


class PortGroup(models.Model):
    """To which network and namespace a port group of a source was mapped last."""

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
    """VMs that are migrated together."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="waves")
    name = models.CharField(max_length=63)
    planned_at = models.DateTimeField(null=True, blank=True)
    note = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ["cluster__name", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"],
                name="wave_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("The cluster has a wave of this name."),
            ),
        ]

    def __str__(self) -> str:
        return self.name


class WaveVM(models.Model):
    """A VM of a wave, by its name in the cluster; it need not be there yet."""

    wave = models.ForeignKey(Wave, on_delete=models.CASCADE, related_name="vms", db_index=False)
    namespace = models.CharField(max_length=63, blank=True, default="")
    vm = models.CharField("VM", max_length=253)
    source_vm = models.CharField(max_length=300, blank=True, default="")

    class Meta:
        verbose_name = _("VM of a wave")
        verbose_name_plural = _("VMs of a wave")
        ordering = ["namespace", "vm"]
        constraints = [
            models.UniqueConstraint(fields=["wave", "namespace", "vm"], name="wave_vm_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.namespace}/{self.vm}" if self.namespace else self.vm
