"""Holders that tooling reports as existing, and leaks: blocks whose holders were missed."""

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from pools.models.blocks import Block
from pools.models.clusters import Cluster


class ReferenceFeed(models.Model):
    """The reports about one kind of holder in one cluster, in the order of their numbers."""

    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="reference_feeds")
    holder_kind = models.CharField(max_length=63)
    sequence = models.BigIntegerField()  # of the last report; an older one is refused
    fingerprint = models.CharField(max_length=64)  # SHA-256 of the last report, hex
    reporter = models.CharField(max_length=150, blank=True, default="")
    reported_at = models.DateTimeField()
    complete_at = models.DateTimeField(null=True)  # of the last complete report
    answer = models.JSONField(default=dict)  # to the last report, and to its repetition

    class Meta:
        ordering = ["cluster_id", "holder_kind"]
        permissions = [("report_references", "Can report references to blocks")]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "holder_kind"], name="reference_feed_unique")
        ]

    def __str__(self) -> str:
        return f"{self.holder_kind}s of {self.cluster}"


class Reference(models.Model):
    """One holder in the last complete report, or in a delta since.

    Without `holder_uid` it matches every object of that name, without `org` every organization.
    """

    # The unique constraint's index begins with this column; the planner would prefer a second index.
    feed = models.ForeignKey(
        ReferenceFeed, on_delete=models.CASCADE, related_name="references", db_index=False
    )
    holder_id = models.CharField(max_length=253)
    holder_uid = models.CharField(max_length=253, blank=True, default="")
    org = models.CharField(max_length=253, blank=True, default="")

    class Meta:
        constraints = [
            models.UniqueConstraint(
                fields=["feed", "holder_id", "holder_uid", "org"], name="reference_unique"
            )
        ]

    def __str__(self) -> str:
        return self.holder_id


class Leak(models.Model):
    """A held block whose holder a complete observation missed.

    The leak is suspected until `confirmed_at`: a second complete observation, at least the grace after
    the first one, missed the holder too. Holder and `allocated_at` are those of the block when it was
    missed: a block that has changed since is not leaked.
    """

    block = models.OneToOneField(
        Block, on_delete=models.CASCADE, related_name="leak", db_constraint=False
    )
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="leaks")
    source = models.CharField(max_length=63)  # of the last observation: tooling, nodes, …
    holder_kind = models.CharField(max_length=63)
    holder_id = models.CharField(max_length=253)
    holder_uid = models.CharField(max_length=253, blank=True, default="")
    allocated_at = models.DateTimeField()
    missed_at = models.DateTimeField()  # first observation that missed the holder
    observed_at = models.DateTimeField()  # last observation that missed the holder
    observations = models.PositiveIntegerField(default=1)
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("leak")
        verbose_name_plural = _("leaks")
        ordering = ["missed_at", "id"]
        permissions = [("reclaim", "Can reclaim leaked blocks")]
        indexes = [
            models.Index(
                fields=["cluster", "id"],
                condition=Q(confirmed_at__isnull=False),
                name="leak_confirmed",
            )
        ]

    def __str__(self) -> str:
        return f"{self.block} of {self.holder_kind} {self.holder_id}"

    @property
    def org(self) -> str:
        """The organization of the block."""
        return self.block.org

    @property
    def env(self) -> str:
        return self.block.env

    @property
    def state(self) -> str:
        """`leaked` or `suspected`."""
        return "leaked" if self.confirmed_at else "suspected"
