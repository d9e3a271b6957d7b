"""How full pools were, day by day, and when they will be full."""

from __future__ import annotations

from django.db import models
from django.utils.translation import gettext_lazy as _

from pools.core.forecast import ForecastState
from pools.models.pools import Category, Pool


class Sample(models.Model):
    """One pool and family on one day, as last counted on it.

    Names instead of foreign keys: the sums of past days stay what they were when a pool goes.
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
    """What all pools of a category or cluster, or all blocks of an organisation or environment, came
    to on one day.

    Of organisations and environments the largest have a row each; `rest` is the sum of the others.
    """

    class By(models.TextChoices):
        CATEGORY = "category", _("Category")
        CLUSTER = "cluster", _("Cluster")
        ORG = "org", _("Organisation")
        ENV = "env", _("Environment")

    day = models.DateField()  # UTC
    by = models.CharField(max_length=8, choices=By)
    org = models.CharField(max_length=253, blank=True, default="")  # of an environment
    name = models.CharField(max_length=253, blank=True, default="")
    rest = models.BooleanField(default=False)
    family = models.PositiveSmallIntegerField()
    members = models.BigIntegerField()  # pools, or of a rest the tenants in it
    # Blocks: a tenant has no capacity of its own. Wider than a pool's, of which thousands are added.
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
    """When a pool's family will be full, as last worked out (pools.core.forecast)."""

    pool = models.ForeignKey(Pool, on_delete=models.CASCADE, related_name="forecasts")
    family = models.PositiveSmallIntegerField()
    state = models.CharField(
        max_length=20,
        choices=[(str(forecast_state), str(forecast_state)) for forecast_state in ForecastState],
    )
    history = models.PositiveIntegerField()  # days it is based on
    per_day = models.FloatField(default=0)  # blocks
    # The likeliest day and the range around it; null: not within the horizon, or never.
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
