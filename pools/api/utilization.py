"""utilization/ and pools/{}/forecast/: utilization over time and its forecast."""

from collections import defaultdict
from datetime import timedelta
from typing import Any

from django.db.models import Max, QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.core import forecast
from pools.core.forecast import ForecastState
from pools.models import Category, Sample, SampleSum
from pools.platform import database
from pools.platform.rest import fields, filters, generics, query
from pools.platform.rest.serializers import Representation
from pools.register import usage
from pools.register.utilization import forecasts, samples as utilization_samples

MOST_DAYS = 400
MOST_WITH_HISTORY = 100  # rows on a page
BY_POOL = "pool"
_GROUPS = (*SampleSum.By.values, BY_POOL)
_TENANTS = {"org", "env"}
_POOL_ORDERINGS = {"name": ("cluster", "pool", "family", "id"), "held": ("held", "id")}
_SUM_ORDERINGS = {"name": ("org", "name", "family", "id"), "held": ("held", "id")}
_COUNTS = ("capacity", "held", "cooling", "reserved", "free", "ratio")
_UNLIMITED = ("capacity", "reserved", "free", "ratio")  # what tenants do not have
# What one of the two kinds of samples lacks.
_OF_POOLS = {"by": BY_POOL, "org": "", "rest": False, "members": 1}
_OF_SUMS = {"cluster": "", "category": "", "pool_id": None}

# Identifies the samples of one row: (pool id, family), or (org, name, rest, family).
Key = tuple[Any, ...]


class SampleCountsSerializer(Representation):
    """Counts of blocks; organizations and environments have no capacity."""

    capacity = fields.CountField(allow_null=True)
    held = fields.CountField()
    cooling = fields.CountField()
    reserved = fields.CountField(allow_null=True)
    free = fields.CountField(allow_null=True)
    ratio = fields.RatioField(allow_null=True)


class DayCountsSerializer(SampleCountsSerializer):
    day = fields.DateField()


class UtilizationRowSerializer(SampleCountsSerializer):
    """The newest counts of a pool, or of what `by` groups; `history` with `days` only."""

    by = fields.ChoiceField(_GROUPS)
    day = fields.DateField()
    taken_at = fields.TimeField()
    org = fields.TextField()
    name = fields.TextField()
    cluster = fields.TextField()
    category = fields.TextField()
    pool_id = fields.IntegerField(allow_null=True)
    family = fields.IntegerField()
    rest = fields.FlagField()
    members = fields.IntegerField()
    history = fields.ListField(child=DayCountsSerializer(), allow_null=True)


class FamilyForecastSerializer(Representation):
    """When the blocks of one family of a pool will be exhausted; `per_day` is the trend in blocks."""

    family = fields.IntegerField()
    state = fields.ChoiceField([str(state) for state in ForecastState], source="forecast.state")
    summary = fields.TextField()
    day = fields.DateField(source="forecast.day", allow_null=True)
    earliest = fields.DateField(source="forecast.earliest", allow_null=True)
    latest = fields.DateField(source="forecast.latest", allow_null=True)
    per_day = fields.ParsedField(schema={"type": "number"})
    history_days = fields.IntegerField(source="forecast.history")
    missing_days = fields.IntegerField(source="forecast.missing")
    used = fields.CountField(source="usage.used")
    free = fields.CountField(source="usage.free")


class ForecastSerializer(Representation):
    """The forecasts of a pool; `share` is the probability that an interval contains the day."""

    pool_id = fields.IntegerField(source="pool.pk")
    pool = fields.TextField(source="pool.name")
    cluster = fields.TextField(source="pool.cluster")
    today = fields.DateField()
    share = fields.RatioField()
    families = fields.ListField(child=FamilyForecastSerializer())


class UtilizationFilter(filters.FilterSet):
    """The filters of pools, or those of sums: each refuses the parameters of the other."""

    name = filters.Filter(method="filter_name", help_text="The exact name.")
    org = filters.Filter(help_text="Environments of this organization.")
    cluster = filters.Filter(
        lookups.cluster,
        select=lambda rows, cluster: rows.filter(cluster=cluster.name),
        help_text="Pools of this cluster: name or id.",
    )
    category = filters.choice(*Category.values, help_text="Pools of this category.")

    def __init__(self, data: Any, queryset: QuerySet[Any], **options: Any) -> None:
        super().__init__(data, queryset, **options)
        group = data.get("by")
        names = {"name", "cluster", "category"} if queryset.model is Sample else {"name"}
        names |= {"org"} if group == SampleSum.By.ENV else set()
        self.filters = {
            name: filter_ for name, filter_ in self.base_filters.items() if name in names
        }

    def filter_name(self, rows: QuerySet[Any], _name: str, name: str) -> QuerySet[Any]:
        return rows.filter(pool=name) if rows.model is Sample else rows.filter(name=name)


class Utilization(generics.ListView):
    needs = {"GET": ("pools.view_pool",)}
    queryset = SampleSum.objects.all()
    serializer_class = UtilizationRowSerializer
    filterset_class = UtilizationFilter
    orderings = _SUM_ORDERINGS
    ordering = "name"

    @filters.parameters(
        by=filters.choice(*_GROUPS, help_text="What a row counts: `category`."),
        days=filters.number(
            1,
            MOST_DAYS,
            help_text=f"Also the samples of so many days, 1 to {MOST_DAYS};"
            f" a page has at most {MOST_WITH_HISTORY} rows then.",
        ),
    )
    def get(self, request: Request) -> Response:
        """Utilization now and over time."""
        values = self.query_values(is_complete=False)
        self.group_by = values["by"] or str(SampleSum.By.CATEGORY)
        if self.group_by in _TENANTS:
            generics.require(request, "pools.view_environment")
        if self.group_by == BY_POOL:
            self.orderings = _POOL_ORDERINGS
        self.days = values["days"]
        if self.days:  # the paginator parses it again, with a higher limit
            self.parameters.parse("limit", query.integer(1, MOST_WITH_HISTORY))
        return self.list(request)

    def get_queryset(self) -> QuerySet[Any]:
        if self.group_by == BY_POOL:
            return Sample.objects.all()
        return SampleSum.objects.filter(by=self.group_by)

    def filter_queryset(self, queryset: QuerySet[Any]) -> QuerySet[Any]:
        self.samples = super().filter_queryset(queryset)
        newest = self.samples.order_by().aggregate(day=Max("day"))["day"]
        return self.samples.filter(day=newest)

    def load(self, rows: list[Any]) -> None:
        history = self._history_by_key(rows) if self.days and rows else {}
        for row in rows:
            if self.group_by == BY_POOL:
                vars(row).update(_OF_POOLS, name=row.pool)
            else:
                vars(row).update(_OF_SUMS)
            row.history = history.get(_key(row), []) if self.days else None
            vars(row).update(self._counts(row))

    def _history_by_key(self, rows: list[Any]) -> dict[Key, list[dict[str, Any]]]:
        """Return the counts of the last days by row, oldest first."""
        names = ("pool_id",) if self.group_by == BY_POOL else ("org", "name")
        condition = {f"{name}__in": {getattr(row, name) for row in rows} for name in names}
        first = database.now().date() - timedelta(days=(self.days or 1) - 1)
        samples = self.samples.filter(**condition, day__gte=first).order_by("day")
        history: dict[Key, list[dict[str, Any]]] = defaultdict(list)
        for sample in samples.iterator():
            history[_key(sample)].append({"day": sample.day, **self._counts(sample)})
        return history

    def _counts(self, sample: Any) -> dict[str, Any]:
        used = utilization_samples.to_usage(sample)
        hidden = _UNLIMITED if self.group_by in _TENANTS else ()
        return {name: None if name in hidden else getattr(used, name) for name in _COUNTS}


def _key(row: Any) -> Key:
    if isinstance(row, Sample):
        return row.pool_id, row.family
    return row.org, row.name, row.rest, row.family


class Forecast(generics.GenericView):
    needs = {"GET": ("pools.view_pool",)}
    serializer_class = ForecastSerializer

    def get(self, request: Request, pool_id: int) -> Response:
        """When a pool will be exhausted."""
        self.parameters.raise_problems()
        pool = lookups.get_pool(pool_id)
        used = usage.pool_usage(pool)
        today = database.now().date()
        families = [
            {
                "family": family,
                "forecast": dated,
                "usage": used[family],
                "per_day": round(dated.per_day, 3),
                "summary": forecasts.describe(dated, today=today),
            }
            for family, dated in forecasts.forecast_pool(pool, used).items()
        ]
        share = forecast.CONFIDENCE
        return self.respond({"pool": pool, "today": today, "share": share, "families": families})
