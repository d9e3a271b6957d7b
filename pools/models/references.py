"""Who still refers to blocks, as tooling reports it, and the blocks that nobody refers to."""

from __future__ import annotations

from django.db import models
from django.db.models import Q

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
    answer = models.JSONField(default=dict)  # to the last report; the same again to its repetition

    class Meta:
        ordering = ["cluster_id", "holder_kind"]
        permissions = [("report_references", "Can report who refers to blocks")]
        constraints = [
            models.UniqueConstraint(fields=["cluster", "holder_kind"], name="reference_feed_unique")
        ]

    def __str__(self) -> str:
        return f"{self.holder_kind}s of {self.cluster}"


class Reference(models.Model):
    """One holder that the last complete report, or a delta since, named.

    Without `holder_uid` any object of that name is meant, without `org` that of any organisation.
    """

    # The unique constraint's index begins with it; a second one would be taken instead of that.
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
    """A held block that a complete observation did not see referenced.

    It is a suspicion until `confirmed_at`: a second complete observation, at least a grace after the
    first, did not see it either. Holder and `allocated_at` are those of the block when it was missed:
    a block that changed since is not the one that leaked.
    """

    block = models.OneToOneField(
        Block, on_delete=models.CASCADE, related_name="leak", db_constraint=False
    )
    cluster = models.ForeignKey(Cluster, on_delete=models.CASCADE, related_name="leaks")
    source = models.CharField(max_length=63)  # whose observation missed it last: tooling, nodes, …
    holder_kind = models.CharField(max_length=63)
    holder_id = models.CharField(max_length=253)
    holder_uid = models.CharField(max_length=253, blank=True, default="")
    allocated_at = models.DateTimeField()
    missed_at = models.DateTimeField()  # by the first complete observation
    observed_at = models.DateTimeField()  # of the last one that missed it
    observations = models.PositiveIntegerField(default=1)
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
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
        """The block's, as long as it is the one that leaked."""
        return self.block.org

    @property
    def env(self) -> str:
        return self.block.env
