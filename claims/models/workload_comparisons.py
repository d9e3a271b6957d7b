from __future__ import annotations

from django.db import models

from claims.models.ipamclaims import IPAMClaim
from claims.models.ippools import Entry
from claims.models.networks import Network
from claims.models.workloads import Workload


class ComparisonResult(models.TextChoices):
    """Result of comparing a registered entry or claim with a running workload."""

    MATCHING = "matching", "matching"
    MISSING = "missing", "missing"  # registered, without a running workload
    DIFFERENT = "different", "different"
    UNKNOWN = "unknown", "unknown"  # running, not registered


class _Comparison(models.Model):
    """An entry or claim beside a running workload (a view: claims/sql/workload_comparison.sql).

    A row is a pair of an entry or claim and a workload, an entry or claim without a workload, or a
    workload that is not registered. `by` is what the two have in common: `mac`, `vm` or `address`.
    `same` is True for a pair with equal values, which is different all the same if the workload is a duplicate.
    Rows are ordered by `section`, `item`, `beside`.
    """

    id = models.CharField(max_length=64, primary_key=True)
    network = models.ForeignKey(Network, on_delete=models.DO_NOTHING, related_name="+")
    section = models.IntegerField()  # 1 entries, 2 claims, 3 workloads that are not registered
    item = models.BigIntegerField()  # the id of the entry, the claim or, in section 3, the workload
    beside = models.BigIntegerField()  # the workload's id, or 0
    entry = models.ForeignKey(Entry, on_delete=models.DO_NOTHING, null=True, related_name="+")
    claim = models.ForeignKey(IPAMClaim, on_delete=models.DO_NOTHING, null=True, related_name="+")
    workload = models.ForeignKey(Workload, on_delete=models.DO_NOTHING, null=True, related_name="+")
    by = models.CharField(max_length=7)
    registered_namespace = models.CharField(max_length=253)
    registered_vm = models.CharField(max_length=253)
    running_namespace = models.CharField(max_length=253)
    running_name = models.CharField(max_length=253)
    same = models.BooleanField()
    result = models.CharField(max_length=9, choices=ComparisonResult)

    class Meta:
        abstract = True
        ordering = ["section", "item", "beside"]

    def __str__(self) -> str:
        return f"{self.result} {self.id}"


class WorkloadComparison(_Comparison):
    """The comparison of a network with all its namespaces."""

    class Meta(_Comparison.Meta):
        abstract = False
        managed = False
        db_table = "claims_workload_comparison"


class NamespaceWorkloadComparison(_Comparison):
    """The comparison of each namespace alone, as if no other existed, for users who see only some."""

    id = models.CharField(max_length=512, primary_key=True)
    namespace = models.CharField(max_length=253)

    class Meta(_Comparison.Meta):
        abstract = False
        managed = False
        db_table = "claims_namespace_workload_comparison"


class WorkloadCounts(models.Model):
    """Stored counts of a comparison by result, of a network that is too large to compare for an overview."""

    network = models.OneToOneField(Network, on_delete=models.CASCADE, related_name="+")
    matching = models.PositiveIntegerField()
    missing = models.PositiveIntegerField()
    different = models.PositiveIntegerField()
    unknown = models.PositiveIntegerField()
    counted_at = models.DateTimeField()

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.network_id}: {self.matching} matching"

    def as_dict(self) -> dict[str, int]:
        """Return the number of rows by result."""
        return {result: getattr(self, result) for result in ComparisonResult.values}
