"""Blocks, their DNS names, free spans and the allocator cache."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _
from netfields import CidrAddressField

from pools.core.holders import ENVIRONMENT as ENV
from pools.models.clusters import AddressSpace
from pools.models.pools import SINGLE, Category, Pool, PoolCIDR


class BlockState(models.TextChoices):
    """The state of a block."""

    AVAILABLE = "available", _("available")  # in the allocator's window, ready for allocation
    HELD = "held", _("allocated")  # belongs to its holder until its release
    COOLING = (
        "cooling",
        _("in cooldown"),
    )  # released; other holders cannot get it before `available_from`


# Blocks in use, which people see; `available` rows are the allocator's window and are never shown.
LIVE = (BlockState.HELD, BlockState.COOLING)


class Block(models.Model):
    """One aligned part of a pool, of the pool's mask size.

    `available_from` is the time from which the block can be allocated: null while held, the end of the
    cooldown while cooling. Holder, org and env of a block that is not held are those of its last
    holder, so that a holder that returns within the cooldown gets its block back and a repeated release
    is recognized. A `withheld` block is never allocated again (a reserved range touches it, or its CIDR
    was removed).
    """

    # Triggers enforce these references (pools/sql/rules.sql): PostgreSQL checks a foreign key for each
    # row, and a batch has thousands of rows of one pool.
    pool = models.ForeignKey(
        Pool,
        on_delete=models.PROTECT,
        related_name="blocks",
        db_index=False,
        db_constraint=False,
    )
    space = models.ForeignKey(
        AddressSpace,
        on_delete=models.PROTECT,
        related_name="+",
        db_index=False,
        db_constraint=False,
    )
    category = models.CharField(max_length=8, choices=Category)
    family = models.PositiveSmallIntegerField(choices=[(4, "IPv4"), (6, "IPv6")])
    cidr = CidrAddressField()
    state = models.CharField(max_length=9, choices=BlockState)
    withheld = models.BooleanField(default=False)
    holder_kind = models.CharField(max_length=63, blank=True, default="")
    holder_id = models.CharField(max_length=253, blank=True, default="")
    holder_uid = models.CharField(max_length=253, blank=True, default="")
    org = models.CharField(_("organization"), max_length=253, blank=True, default="")
    env = models.CharField(_("environment"), max_length=253, blank=True, default="")
    allocated_at = models.DateTimeField(null=True, blank=True)
    released_at = models.DateTimeField(null=True, blank=True)
    available_from = models.DateTimeField(null=True, blank=True)

    class Meta:
        verbose_name = _("block")
        verbose_name_plural = _("blocks")
        ordering = ["id"]
        constraints = [
            models.UniqueConstraint(
                fields=["space", "cidr"],
                name="block_unique",
                violation_error_code="already_allocated",
            ),
            models.UniqueConstraint(
                fields=["holder_id", "holder_kind", "space", "category", "family"],
                condition=Q(state=BlockState.HELD, category__in=SINGLE) & ~Q(holder_kind=ENV),
                name="one_block_per_holder",
                violation_error_code="one_per_holder",
            ),
            # Two organizations may each have an environment `prod`.
            models.UniqueConstraint(
                fields=["holder_id", "org", "space", "category", "family"],
                condition=Q(state=BlockState.HELD, category__in=SINGLE, holder_kind=ENV),
                name="one_block_per_environment",
                violation_error_code="one_per_holder",
            ),
            models.CheckConstraint(
                name="block_state",
                condition=Q(state=BlockState.HELD, available_from=None, allocated_at__isnull=False)
                & ~Q(holder_id="")
                & ~Q(holder_kind="")
                | Q(
                    state=BlockState.COOLING,
                    available_from__isnull=False,
                    released_at__isnull=False,
                )
                | Q(state=BlockState.AVAILABLE, available_from__isnull=False),
            ),
        ]
        indexes = [
            # The allocator's queue: fresh blocks (dated long ago, pools/sql/allocate.sql), then the blocks
            # that are free for the longest time; CIDRs and addresses in order.
            models.Index(
                fields=["pool", "family", "available_from", "id"],
                condition=Q(available_from__isnull=False, withheld=False),
                name="block_queue",
            ),
            models.Index(
                fields=["pool", "state", "family", "withheld"],
                condition=Q(state__in=LIVE),
                name="block_pool_state",
            ),
            models.Index(
                fields=["holder_id", "holder_kind"],
                condition=Q(state__in=LIVE),
                name="block_holder",
            ),
            models.Index(
                fields=["env", "org"], condition=Q(state__in=LIVE) & ~Q(env=""), name="block_env"
            ),
            models.Index(
                fields=["available_from"],
                condition=Q(state=BlockState.COOLING),
                name="block_cooling",
            ),
        ]

    def __str__(self) -> str:
        return str(self.cidr)


class DNSName(models.Model):
    """The DNS name that a holder's block has, for as long as this holder has it.

    A name belongs to the time of allocation of its block, and ends with it: so a release, which is the hot
    path, does not know of names. Blocks of the same name are its round robin.
    """

    block_id = models.BigIntegerField(primary_key=True)
    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="+")
    cidr = CidrAddressField()
    # The holder, and since when: what tells it from earlier and later ones.
    holder_kind = models.CharField(max_length=63)
    holder_id = models.CharField(max_length=253)
    allocated_at = models.DateTimeField()
    name = models.CharField(max_length=253)

    class Meta:
        verbose_name = _("DNS name")
        verbose_name_plural = _("DNS names")
        default_permissions = ()
        indexes = [models.Index(fields=["name"], name="dns_name")]

    def __str__(self) -> str:
        return self.name


class FreeSpan(models.Model):
    """A run of a CIDR's blocks, by index (first block 0), that have no row and can be allocated.

    The free spans are the CIDR's usable blocks without reserved ones and without those that have a row.
    The allocator takes its next window from the lowest span.
    """

    pool_cidr = models.ForeignKey(PoolCIDR, on_delete=models.CASCADE, related_name="free_spans")
    first = models.DecimalField(max_digits=39, decimal_places=0)
    last = models.DecimalField(max_digits=39, decimal_places=0)

    class Meta:
        ordering = ["pool_cidr_id", "first"]
        constraints = [
            models.UniqueConstraint(fields=["pool_cidr", "first"], name="span_first_unique"),
            models.CheckConstraint(
                name="span_order", condition=Q(first__gte=0) & Q(last__gte=models.F("first"))
            ),
        ]

    def __str__(self) -> str:
        return f"{self.pool_cidr_id}[{self.first}..{self.last}]"


class Window(models.Model):
    """The allocator cache of a pool and family: all columns that the hot path needs, in one row.

    `since` is the time from which the allocator searches for the oldest available block. It is only a
    hint: every block before it is held or being allocated, so that the search does not pass the index
    entries of thousands of blocks that were allocated before. If the search finds nothing, all blocks
    are searched.
    The other columns are copies of pool and cluster, because reading these rows would double the cost of
    the hot path (pools/sql/allocate.sql). Triggers delete the cache when one of them changes
    (pools/sql/rules.sql); the allocator works without it and writes it again. Null values were written
    by an older version.
    """

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="+")
    family = models.PositiveSmallIntegerField()
    since = models.DateTimeField()
    all_drawn = models.BooleanField(null=True)  # no free span is left: released blocks are next
    only_family = models.BooleanField(null=True)  # the pool has no other family
    space_id = models.BigIntegerField(null=True)
    category = models.CharField(max_length=8, null=True)  # noqa: DJ001  # null like all copies
    cluster_id = models.BigIntegerField(null=True)
    pool_name = models.CharField(max_length=253, null=True)  # noqa: DJ001
    cluster_name = models.CharField(max_length=253, null=True)  # noqa: DJ001

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["pool", "family"], name="window_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.pool_id}/{self.family} since {self.since}"
