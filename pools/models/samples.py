"""Daily samples of utilization, forecasts of exhaustion, and the counters and timings of processes.

The latter are summed in rows, because a scrape reaches only one process.
"""

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils.translation import gettext_lazy as _

from pools.core.forecast import ForecastState
from pools.models.pools import Category, Pool


class Sample(models.Model):
    """The last counts of one pool and family on one day.

    It has names instead of foreign keys, so that the sums of past days do not change when a pool is
    deleted.
    """

    day = models.DateField()  # UTC
    pool_id = models.BigIntegerField()
    cluster = models.CharField(max_length=63)
    pool = models.CharField(max_length=253)
    category = models.CharField(max_length=8, choices=Category)
    family = models.PositiveSmallIntegerField()
    capacity = models.DecimalField(max_digits=39, decimal_places=0)
    held = models.BigIntegerField()
    cooling = models.BigIntegerField()
    reserved = models.DecimalField(max_digits=39, decimal_places=0)
    taken_at = models.DateTimeField()

    class Meta:
        ordering = ["day", "pool_id", "family"]
        constraints = [
            models.UniqueConstraint(fields=["pool_id", "family", "day"], name="sample_unique")
        ]
        indexes = [models.Index(fields=["day"], name="sample_day")]

    def __str__(self) -> str:
        return f"{self.cluster}/{self.pool} on {self.day}"


class SampleSum(models.Model):
    """The sums of a category, cluster, organization or environment on one day.

    The largest organizations and environments have a row each; `rest` is the sum of the others.
    """

    class By(models.TextChoices):
        CATEGORY = "category", _("Category")
        CLUSTER = "cluster", _("Cluster")
        ORG = "org", _("Organization")
        ENV = "env", _("Environment")

    day = models.DateField()  # UTC
    by = models.CharField(max_length=8, choices=By)
    org = models.CharField(max_length=253, blank=True, default="")  # of an environment
    name = models.CharField(max_length=253, blank=True, default="")
    rest = models.BooleanField(default=False)
    family = models.PositiveSmallIntegerField()
    members = models.BigIntegerField()  # number of pools; in a rest, number of tenants
    # In blocks; 0 for tenants, which have no capacity. Wider than in Sample, because thousands are added.
    capacity = models.DecimalField(max_digits=48, decimal_places=0, default=0)
    held = models.BigIntegerField()
    cooling = models.BigIntegerField()
    reserved = models.DecimalField(max_digits=48, decimal_places=0, default=0)
    taken_at = models.DateTimeField()

    class Meta:
        ordering = ["day", "by", "org", "name", "family"]
        constraints = [
            models.UniqueConstraint(
                fields=["by", "day", "org", "name", "family", "rest"], name="sample_sum_unique"
            )
        ]
        indexes = [models.Index(fields=["day"], name="sample_sum_day")]

    def __str__(self) -> str:
        return f"{self.by} {self.name} on {self.day}"


class PoolForecast(models.Model):
    """The last forecast of the exhaustion of a pool's family (pools.core.forecast)."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="forecasts")
    family = models.PositiveSmallIntegerField()
    state = models.CharField(
        max_length=20,
        choices=[(str(forecast_state), str(forecast_state)) for forecast_state in ForecastState],
    )
    history = models.PositiveIntegerField()  # days of samples
    per_day = models.FloatField(default=0)  # blocks
    # The most likely day and its range; null: not within the horizon, or never.
    day = models.DateField(null=True, blank=True)
    earliest = models.DateField(null=True, blank=True)
    latest = models.DateField(null=True, blank=True)
    made_at = models.DateTimeField()

    class Meta:
        ordering = ["pool_id", "family"]
        constraints = [
            models.UniqueConstraint(fields=["pool", "family"], name="pool_forecast_unique")
        ]
        indexes = [models.Index(fields=["day"], name="pool_forecast_day")]

    def __str__(self) -> str:
        return f"{self.pool_id}/{self.family}: {self.state}"


class Measure(models.Model):
    """The total of one metric with its labels (a JSON object as text, keys sorted)."""

    name = models.CharField(max_length=120)
    labels = models.TextField(default="{}")
    value = models.FloatField()

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["name", "labels"], name="measure_unique"),
        ]

    def __str__(self) -> str:
        return f"{self.name}{self.labels}"


class CountedUntil(models.Model):
    """The number up to which the events of a log are counted in the totals.

    Every number up to `assigned` was assigned before the transactions `waits_for` were listed (virtual ids of
    transactions that had drawn a number and had not ended). When they have ended, no event up to `assigned`
    can appear any more.
    """

    log = models.CharField(max_length=63, primary_key=True)
    counted = models.BigIntegerField(default=0)
    assigned = models.BigIntegerField(default=0)
    waits_for = ArrayField(models.CharField(max_length=40), default=list)

    def __str__(self) -> str:
        return f"{self.log} until {self.counted}"
