"""Pools, their CIDRs and reserved ranges, migrations from one CIDR to another, and containers of the plan."""

from django.contrib.contenttypes.fields import GenericRelation
from django.contrib.postgres.constraints import ExclusionConstraint
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import F, Func, Q, Value
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField

from pools.core.holders import LONGEST_COOLDOWN
from pools.models.attributes import Attributed, attribute_indexes
from pools.models.clusters import AddressSpace, Cluster
from pools.models.fields import HostAddressField, equal_in_gist, no_overlap

DAY = 24 * 60 * 60
INSTANCE_COOLDOWN_MIN = 60 * 60  # rule `instance-cools-an-hour`


class Category(models.TextChoices):
    """The purpose of a pool's blocks."""

    POD = "pod", _("Pod CIDRs")  # a CiliumPodIPPool
    NODE = "node", _("Nodes")  # overlay addresses of nodes
    INSTANCE = "instance", _("Instances")  # overlay addresses of micro-VMs
    IPV4 = "ipv4", _("Public IPv4")  # the paid add-on of an environment
    VM = "vm", _("VM networks")


# A holder holds at most one block of each family (rule `one-block-per-holder`).
SINGLE = (Category.NODE, Category.INSTANCE, Category.IPV4)

DEFAULT_COOLDOWN = {
    Category.POD: 0,
    Category.NODE: 30 * DAY,
    Category.INSTANCE: DAY,
    Category.IPV4: DAY,
    Category.VM: 0,
}


class Pool(Attributed):
    """A list of CIDRs, each with its reserved ranges, and a mask size per family.

    A trigger refuses changes of category, address space and mask sizes (rule `mask-size-never-changes`).
    """

    cluster = models.ForeignKey(Cluster, on_delete=models.PROTECT, related_name="pools")
    space = models.ForeignKey(AddressSpace, on_delete=models.PROTECT, related_name="pools")
    name = models.CharField(max_length=253)
    category = models.CharField(max_length=8, choices=Category)
    mask_size_v4 = models.PositiveSmallIntegerField(null=True, blank=True)
    mask_size_v6 = models.PositiveSmallIntegerField(null=True, blank=True)
    cooldown_seconds = models.BigIntegerField(default=0)
    allow_first_ip = models.BooleanField(default=False)
    allow_last_ip = models.BooleanField(default=False)
    annotations = models.JSONField(default=dict, blank=True)
    labels = models.JSONField(default=dict, blank=True)
    pod_selector = models.JSONField(null=True, blank=True)
    namespace_selector = models.JSONField(null=True, blank=True)
    description = models.CharField(max_length=500, blank=True, default="")
    # Derives the DNS names of its addresses (pools/core/dns_names.py): {holder}.{cluster}.example.org
    dns_pattern = models.CharField(max_length=253, blank=True, default="", db_default="")
    version = models.PositiveBigIntegerField(default=1, editable=False)  # the ETag
    # The pool was deleted in the cluster while blocks are in use: no new blocks are allocated.
    orphaned_at = models.DateTimeField(null=True, blank=True, editable=False)
    # Ingested from a cluster and not changed in the register since: it follows the cluster's object.
    follows_cluster = models.BooleanField(default=False, db_default=False, editable=False)
    # The state in which pool and object were last equal: the object's uid and resourceVersion, and the
    # version of this row. With any other value they have to be compared.
    agreed = models.CharField(max_length=160, blank=True, default="", db_default="", editable=False)
    created_at = models.DateTimeField(auto_now_add=True)
    journal = GenericRelation("pools.JournalEntry")

    class Meta:
        verbose_name = _("pool")
        verbose_name_plural = _("pools")
        ordering = ["cluster__name", "name"]
        constraints = [
            models.UniqueConstraint(
                fields=["cluster", "name"],
                name="pool_name_unique",
                violation_error_code="already_exists",
                violation_error_message=_("The cluster already has a pool of this name."),
            ),
            models.CheckConstraint(
                name="pool_mask_sizes",
                condition=Q(mask_size_v4__range=(1, 32)) | Q(mask_size_v4=None),
                violation_error_message=_("An IPv4 mask size must be between 1 and 32."),
            ),
            models.CheckConstraint(
                name="pool_mask_sizes_v6",
                condition=Q(mask_size_v6__range=(1, 128)) | Q(mask_size_v6=None),
                violation_error_message=_("An IPv6 mask size must be between 1 and 128."),
            ),
            models.CheckConstraint(
                name="pool_cooldown",
                condition=Q(cooldown_seconds__range=(0, LONGEST_COOLDOWN))
                & (~Q(category=Category.INSTANCE) | Q(cooldown_seconds__gte=INSTANCE_COOLDOWN_MIN)),
                violation_error_code="cooldown",
                violation_error_message=_(
                    "A cooldown must be between 0 and 10 years, and at least 1 hour for instances."
                ),
            ),
        ]
        indexes = attribute_indexes("pool")
        permissions = [
            ("allocate", "Can allocate and release blocks"),
            ("force_release", "Can release for another holder and skip a cooldown"),
        ]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.name}"

    def mask_size(self, family: int) -> int | None:
        """Return the prefix length of the pool's blocks of the family (4 or 6), or None."""
        return self.mask_size_v4 if family == 4 else self.mask_size_v6


class Pending(models.TextChoices):
    """A change of a pool's CIDRs that the cluster's object does not have yet."""

    ADDITION = "addition", _("addition")  # the register has the CIDR, the object does not
    REMOVAL = "removal", _("removal")  # the object has the CIDR, the register removes it


class PoolCIDR(Attributed):
    """One CIDR of a pool; blocks are allocated from a pool's CIDRs in the order of `position`."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="cidrs")
    space = models.ForeignKey(AddressSpace, on_delete=models.PROTECT, related_name="+")
    cidr = CidrAddressField()
    position = models.PositiveIntegerField(default=0)
    # The CIDR was removed from the cluster's pool while blocks are in use: no new blocks are allocated.
    orphaned_at = models.DateTimeField(null=True, blank=True, editable=False)
    # The change that the cluster has not applied yet; until then no new blocks are allocated.
    pending = models.CharField(
        max_length=8, choices=Pending, blank=True, default="", db_default="", editable=False
    )
    # In pod pools: the index at which the search for a node's next block begins (Cilium's next-fit).
    next_index = models.DecimalField(
        max_digits=39, decimal_places=0, default=0, db_default=0, editable=False
    )
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("CIDR")
        verbose_name_plural = _("CIDRs")
        ordering = ["pool_id", "position", "id"]
        constraints = [
            no_overlap(
                name="cidrs_of_a_space_never_overlap",
                within="space",
                column="cidr",
                message=_("This CIDR overlaps another CIDR of the address space."),
            ),
        ]
        indexes = [
            models.Index(fields=["cidr", "space"], name="pool_cidr_order"),
            *attribute_indexes("pool_cidr"),
        ]

    def __str__(self) -> str:
        return str(self.cidr)

    @property
    def closed(self) -> bool:
        """Return True if no new blocks are allocated from the CIDR, whatever its reserved ranges."""
        return self.orphaned_at is not None or bool(self.pending)


class ReservedRange(models.Model):
    """Addresses of a CIDR that are not allocated; blocks in use stay with their holders."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="reserved_ranges")
    pool_cidr = models.ForeignKey(
        PoolCIDR, on_delete=models.CASCADE, related_name="reserved_ranges"
    )
    first = HostAddressField()
    last = HostAddressField()
    reason = models.CharField(max_length=500, blank=True, default="")
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        verbose_name = _("reserved range")
        verbose_name_plural = _("reserved ranges")
        ordering = ["pool_cidr_id", "first"]
        constraints = [
            ExclusionConstraint(
                name="ranges_of_a_cidr_never_overlap",
                index_type="GIST",
                expressions=[
                    equal_in_gist("pool_cidr"),
                    (Func(F("first"), F("last"), Value("[]"), function="inetrange"), "&&"),
                ],
                violation_error_code="ranges_overlap",
                violation_error_message=_(
                    "This range overlaps another reserved range of the CIDR."
                ),
            ),
        ]

    def __str__(self) -> str:
        return self.span

    @property
    def span(self) -> str:
        """The first and the last address, as `10.20.0.0-10.20.0.99`."""
        return f"{self.first}-{self.last}"


class MigrationOutcome(models.TextChoices):
    """How a migration ended."""

    REMOVED = "removed", _("removed")  # the CIDR was removed from the pool
    KEPT = "kept", _("kept")  # the drained range stays reserved
    ABORTED = "aborted", _("aborted")  # the ranges that it reserved were removed


class CIDRMigration(models.Model):
    """The intention to empty a CIDR of a pool, or a range of it, and to replace it.

    The progress is not stored: it is derived from the pool, its ranges and its blocks. `first` and
    `last` are the range to empty, `to` is the replacement CIDR, `in_use` the number of blocks in use in
    the range when the migration began.
    """

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="migrations")
    pool_cidr = models.ForeignKey(
        PoolCIDR, on_delete=models.SET_NULL, null=True, related_name="migrations"
    )
    cidr = CidrAddressField()
    first = HostAddressField()
    last = HostAddressField()
    to = CidrAddressField(null=True, blank=True)
    in_use = models.BigIntegerField()
    # The reserved ranges that it created; no foreign keys, because a range can be deleted before it.
    range_ids = ArrayField(models.BigIntegerField(), default=list, blank=True)
    reason = models.CharField(max_length=500, blank=True, default="")
    started_by = models.CharField(max_length=150)
    started_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True, blank=True)
    outcome = models.CharField(max_length=7, choices=MigrationOutcome, blank=True, default="")

    class Meta:
        verbose_name = _("CIDR migration")
        verbose_name_plural = _("CIDR migrations")
        ordering = ["-id"]
        default_permissions = ()
        constraints = [
            models.UniqueConstraint(
                fields=["pool_cidr"],
                condition=Q(ended_at=None),
                name="one_migration_of_a_cidr",
                violation_error_code="already_exists",
            ),
            models.CheckConstraint(
                name="an_ended_migration_has_an_outcome",
                condition=Q(ended_at=None, outcome="") | Q(ended_at__isnull=False) & ~Q(outcome=""),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.cidr} of {self.pool}"


class Container(Attributed):
    """A CIDR that is planned for some purpose and contains other CIDRs: containers, pools' CIDRs, prefixes.

    Nothing is allocated from it. Without an address space it belongs to the plan of the fleet, which has
    the CIDRs of all clusters.
    """

    space = models.ForeignKey(
        AddressSpace, on_delete=models.CASCADE, null=True, blank=True, related_name="containers"
    )
    cidr = CidrAddressField()
    name = models.CharField(max_length=253, blank=True, default="")
    description = models.CharField(max_length=500, blank=True, default="")
    version = models.PositiveBigIntegerField(default=1, editable=False)  # the ETag
    created_at = models.DateTimeField(auto_now_add=True)
    journal = GenericRelation("pools.JournalEntry")

    class Meta:
        verbose_name = _("network container")
        verbose_name_plural = _("network containers")
        ordering = ["cidr", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["cidr", "space"],
                name="container_unique",
                nulls_distinct=False,
                violation_error_code="already_exists",
                violation_error_message=_(
                    "The address space already has a container of this CIDR."
                ),
            ),
        ]
        indexes = attribute_indexes("container")

    def __str__(self) -> str:
        return f"{self.cidr} {self.name}".strip()

    @property
    def cluster(self) -> Cluster | None:
        """The cluster of the address space; None in the plan of the fleet."""
        return self.space.cluster if self.space else None
