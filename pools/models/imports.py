"""Imports of all kinds, their files and their rows; and what a source says about an object of this register.

A kind of imports is a proxy of `Import`, which has permissions of its own and names its options, and one of
`ImportRow`, which names the values of its rows.
"""

from __future__ import annotations

from collections.abc import Callable
from ipaddress import ip_address, ip_network
from typing import Any, ClassVar, Self

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from pools.models.clusters import AddressSpace, Cluster
from pools.models.fields import HostAddressField
from pools.models.pools import DAY


class ImportStatus(models.TextChoices):
    """Status of an import; the values after `drafted` are its outcome."""

    QUEUED = "queued", _("queued")
    DRAFTING = "drafting", _("reading")
    DRAFTED = "drafted", _("ready for review")
    COMMITTING = "committing", _("committing")
    COMMITTED = "committed", _("committed")
    UNDONE = "undone", _("undone")
    CANCELLED = "cancelled", _("cancelled")
    FAILED = "failed", _("failed")


class RowStatus(models.TextChoices):
    """Effect of a commit on a row: what it would do, or did."""

    NEW = "new", _("new")
    CHANGED = "changed", _("changed")
    UNCHANGED = "unchanged", _("unchanged")
    CONFLICT = "conflict", _("conflict")
    INVALID = "invalid", _("invalid")
    LEFT_OUT = "left_out", _("left out")  # by a user
    VANISHED = "vanished", _("gone from the source")  # of a mirror, and not confirmed yet
    RELEASED = "released", _("released")  # confirmed, or a range that has other ends now


# Imports with a step for a worker.
WAITING = Q(status__in=[ImportStatus.QUEUED, ImportStatus.DRAFTING, ImportStatus.COMMITTING]) | Q(
    undo_wanted=True
)


class Import(models.Model):
    """What is uploaded to become rows: first a draft, which is then committed, undone or discarded.

    `kind` is that of its proxy, `options` are what it was started with (the proxy's properties), `counts` is the
    number of rows by status, and `left_out` the number of items of the source that are no rows, by reason.
    `cluster` gets the rows that nothing sends elsewhere; `mapping` says what does, by names of the source.
    """

    KIND: ClassVar[str] = ""  # of a proxy, as is the class of its rows
    ROW: ClassVar[type[ImportRow]]

    kind = models.CharField(max_length=8, editable=False)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="imports")
    options = models.JSONField(default=dict, blank=True)
    mapping = models.JSONField(default=dict, blank=True)
    netbox_source = models.ForeignKey(
        "NetBoxSource", on_delete=models.SET_NULL, null=True, blank=True, related_name="imports"
    )
    mirror = models.BooleanField(default=False)  # also asks about what the source lacks
    # Limited to the namespaces of the user's memberships; nothing of other namespaces is shown.
    limited = models.BooleanField(default=False)
    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, blank=True, related_name="+"
    )
    format = models.CharField(max_length=32, blank=True, default="")
    file_name = models.CharField(max_length=255, blank=True, default="")
    status = models.CharField(max_length=10, choices=ImportStatus, default=ImportStatus.QUEUED)
    counts = models.JSONField(default=dict, blank=True)
    left_out = models.JSONField(default=dict, blank=True)
    # Assumptions of the reader: [{"code", "message"}].
    notes = models.JSONField(default=list, blank=True)
    rows_total = models.PositiveIntegerField(null=True, blank=True)
    rows_done = models.PositiveIntegerField(default=0)
    commit_wanted = models.BooleanField(default=False)  # commit as soon as the draft is complete
    # Of the requested or done commit: leave out rows with errors.
    skip_bad = models.BooleanField(default=False)
    cancel_wanted = models.BooleanField(default=False)
    undo_wanted = models.BooleanField(default=False)  # undo by a worker
    error_code = models.CharField(max_length=63, blank=True, default="")
    error = models.CharField(max_length=1000, blank=True, default="")
    actor = models.CharField(max_length=150, blank=True, default="")
    source = models.CharField(max_length=8, blank=True, default="")
    request_id = models.CharField(max_length=64, blank=True, default="")
    # Attempts at the step in progress.
    tries = models.PositiveSmallIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    started_at = models.DateTimeField(null=True, blank=True)  # of the step in progress
    drafted_at = models.DateTimeField(null=True, blank=True)
    committed_at = models.DateTimeField(null=True, blank=True)
    undone_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("import")
        ordering = ["-id"]
        default_permissions = ()
        indexes = [models.Index(fields=["id"], condition=WAITING, name="import_waiting")]

    def __str__(self) -> str:
        return f"import {self.pk}"

    def save(self, *args: Any, **options: Any) -> None:
        self.kind = self.kind or self.KIND
        super().save(*args, **options)

    @classmethod
    def new(cls, **values: Any) -> Self:
        """Return an import with the options of its kind, which is not saved yet."""
        return cls(**values)

    @property
    def rows(self) -> models.QuerySet[Any]:
        """Its rows, with the values of its kind."""
        return self.ROW._default_manager.filter(source_import=self)


class ImportFile(models.Model):
    """A file of an import that has not been read yet; what was pasted or sent as rows (JSON) has no name."""

    source_import = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="files")
    name = models.CharField(max_length=255, blank=True, default="")
    content = models.BinaryField()

    class Meta:
        ordering = ["id"]
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.name or 'file'} of import {self.source_import_id}"


class ImportRow(models.Model):
    """A row of an import: what its source says, what that means, and what a commit does with it.

    `texts` are those of the source, or a user's correction of them, `values` what they mean: each kind has a proxy
    with properties for them. `problems` are those of the row itself and of the rows around it, `verdict` is the status
    that they give it ("" if the register decides). `reasons` are these and the conflicts with the register; each
    `[{"code", "message"}]`. `object_id` is the object of the row: it existed before (`before` are its former values, if
    the row changes it), or the commit created it.
    """

    # Without a constraint, which would be checked for each of a hundred thousand rows. Only a transaction that has
    # the import's lock writes rows.
    source_import = models.ForeignKey(
        Import, models.CASCADE, related_name="+", db_constraint=False, db_index=False
    )
    number = models.PositiveIntegerField()  # counts from 1 in the import
    file = models.CharField(max_length=255, blank=True, default="")  # and its sheet
    line = models.PositiveIntegerField()  # its position in the file
    texts = models.JSONField(default=dict)
    values = models.JSONField(default=dict)
    problems = models.JSONField(default=list)
    verdict = models.CharField(max_length=9, blank=True, default="")
    status = models.CharField(
        max_length=9, choices=RowStatus, default=RowStatus.NEW, db_default=RowStatus.NEW
    )
    reasons = models.JSONField(default=list, db_default=[])
    object_id = models.BigIntegerField(null=True)
    before = models.JSONField(null=True)
    skipped = models.BooleanField(default=False)  # by a user
    corrected = models.BooleanField(default=False)
    written = models.BooleanField(default=False, db_default=False)

    class Meta:
        verbose_name = _("row of an import")
        ordering = ["source_import_id", "number"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(fields=["source_import", "number"], name="import_row_number"),
        ]
        indexes = [
            models.Index(fields=["source_import", "status", "number"], name="import_row_status"),
        ]

    def __str__(self) -> str:
        return f"row {self.number} of import {self.source_import_id}"


class ImportManager(models.Manager[Any]):
    """The imports of one kind."""

    def get_queryset(self) -> models.QuerySet[Any]:
        return super().get_queryset().filter(kind=self.model.KIND)


def in_json(
    column: str, name: str, default: Any = None, *, parse: Callable[[str], Any] | None = None
) -> Any:
    """Return a property: the value that a JSON column has by this name; with `parse` the object of its text."""

    def read(row: models.Model) -> Any:
        value = getattr(row, column).get(name, default)
        return value if parse is None or value is None else parse(value)

    def write(row: models.Model, value: Any) -> None:
        getattr(row, column)[name] = value if parse is None or value is None else str(value)

    return property(read, write)


class RegisterTarget(models.TextChoices):
    """What a row of an import becomes."""

    CONTAINER = "container", _("network container")
    POOL = "pool", _("pool")
    ADDRESS = "address", _("held address")
    RESERVED = "reserved", _("reserved range")


class NetBoxSource(models.Model):
    """A NetBox that is read over its REST API: for single imports, and with `every_minutes` as a mirror, one way.

    `sealed` is its token (pools/platform/outbound/secrets.py); `mapping` is that of RegisterImport.
    """

    name = models.CharField(max_length=63, unique=True)
    url = models.CharField(max_length=500)
    ca = models.TextField(blank=True, default="")  # PEM; "" trusts the system's own
    sealed = models.TextField(editable=False)
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="netbox_sources")
    mapping = models.JSONField(default=dict, blank=True)
    holder_kind = models.CharField(max_length=63, default="host")
    cooldown_seconds = models.BigIntegerField(default=DAY)
    every_minutes = models.PositiveIntegerField(null=True, blank=True)  # null: only by hand
    next_run_at = models.DateTimeField(null=True, editable=False)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("NetBox source")
        verbose_name_plural = _("NetBox sources")
        ordering = ["name"]

    def __str__(self) -> str:
        return self.name


class RegisterRow(ImportRow):
    """A row of an import of another register.

    `pool_row` is the row of the prefix that an address lies in, `pool_cidr_id` the existing CIDR. Its object is a
    container, a pool's CIDR, a reserved range or a block.
    """

    kind = in_json("values", "kind")
    target = in_json("values", "target", "")
    cidr = in_json("values", "cidr", parse=ip_network)
    first = in_json("values", "first", parse=ip_address)
    last = in_json("values", "last", parse=ip_address)
    cluster_id = in_json("values", "cluster_id")
    space_name = in_json("values", "space_name", "")
    pool_row = in_json("values", "pool_row")
    pool_cidr_id = in_json("values", "pool_cidr_id")
    pool_name = in_json("values", "pool_name", "")
    holder_id = in_json("values", "holder_id", "")
    org = in_json("values", "org", "")
    description = in_json("values", "description", "")
    details = in_json("values", "details", {})

    class Meta:
        proxy = True
        default_permissions = ()


class RegisterImport(Import):
    """An import of prefixes, ranges and addresses of another register.

    `mapping` is `{"vrf": {name: cluster id}, "site": {name: cluster id}}`; `cluster` gets what neither a column nor
    it sends to another one.
    """

    KIND: ClassVar[str] = "register"
    ROW = RegisterRow
    holder_kind = in_json("options", "holder_kind", "host")
    cooldown_seconds = in_json("options", "cooldown_seconds", DAY)  # of the pools that it creates
    objects: ClassVar[ImportManager] = ImportManager()

    class Meta:
        proxy = True
        verbose_name = _("register import")
        verbose_name_plural = _("register imports")
        default_permissions = ("add", "change", "view")


class RegisterRecord(models.Model):
    """What another register says about a container, a pool's CIDR, a reserved range or a held address.

    It belongs to the addresses `first` to `last` of an address space, and for a held address to the holder
    `holder_id`: with another holder it says nothing.
    """

    space = models.ForeignKey(
        AddressSpace, on_delete=models.CASCADE, related_name="+", db_index=False
    )
    target = models.CharField(max_length=9, choices=RegisterTarget)
    first = HostAddressField()
    last = HostAddressField()
    holder_id = models.CharField(max_length=253, blank=True, default="")
    description = models.CharField(max_length=500, blank=True, default="")
    details = models.JSONField(default=dict)
    register_import_id = models.BigIntegerField()
    source_id = models.BigIntegerField(null=True)  # the NetBox source that brought it
    external_id = models.BigIntegerField(null=True)  # its id there

    class Meta:
        ordering = ["id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["space", "target", "first", "last"], name="register_record_unique"
            ),
        ]
        indexes = [
            models.Index(
                fields=["source_id"],
                condition=Q(source_id__isnull=False),
                name="register_record_source",
            )
        ]

    def __str__(self) -> str:
        return f"{self.first}-{self.last}"
