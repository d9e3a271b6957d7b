from __future__ import annotations

from django.db import models

from claims.models.ipamclaims import IPAMClaim
from claims.models.ippools import Entry
from claims.models.networks import Network
from claims.models.workloads import Workload


class ComparisonResult(models.TextChoices):
    """Whether what runs agrees with the register."""

    MATCHING = "matching", "matching"
    MISSING = "missing", "missing"  # registered, and nothing runs with it
    DIFFERENT = "different", "different"
    UNKNOWN = "unknown", "unknown"  # runs, and nothing is registered


class _Comparison(models.Model):
    """What is registered beside what runs with it (a view: claims/sql/verdicts.sql).

    One row for each entry or claim and each workload that it speaks of; for one of which nothing
    runs; for a workload of which nothing is registered. `by` says why two stand together: `mac`,
    `vm`, `address`. Rows are in the order of `section`, `item`, `beside`.
    """

    id = models.CharField(max_length=64, primary_key=True)
    network = models.ForeignKey(Network, on_delete=models.DO_NOTHING, related_name="+")
    section = models.IntegerField()  # 1 entries, 2 claims, 3 workloads alone
    item = models.BigIntegerField()
    beside = models.BigIntegerField()  # the workload's id, 0 without one
    entry = models.ForeignKey(Entry, on_delete=models.DO_NOTHING, null=True, related_name="+")
    claim = models.ForeignKey(IPAMClaim, on_delete=models.DO_NOTHING, null=True, related_name="+")
    workload = models.ForeignKey(Workload, on_delete=models.DO_NOTHING, null=True, related_name="+")
    by = models.CharField(max_length=7)
    registered_namespace = models.CharField(max_length=253)
    registered_vm = models.CharField(max_length=253)
    running_namespace = models.CharField(max_length=253)
    running_name = models.CharField(max_length=253)
    verdict = models.CharField(max_length=9, choices=ComparisonResult)

    class Meta:
        abstract = True
        ordering = ["section", "item", "beside"]

    def __str__(self) -> str:
        return f"{self.verdict} {self.id}"


class Verdict(_Comparison):
    """Of a network as a whole."""

    class Meta(_Comparison.Meta):
        abstract = False
        managed = False
        db_table = "claims_verdict"


class OwnVerdict(_Comparison):
    """Of each namespace by itself, for those who see no other: foreign things do not exist in it."""

    id = models.CharField(max_length=512, primary_key=True)
    namespace = models.CharField(max_length=253)

    class Meta(_Comparison.Meta):
        abstract = False
        managed = False
        db_table = "claims_own_verdict"
