"""alerts/: conditions that were raised as alerts, open and ended ones."""

from __future__ import annotations

from django.db.models import QuerySet
from rest_framework.request import Request
from rest_framework.response import Response

from pools.models import Alert
from pools.models.alerts import Level
from pools.platform.alerts.representation import AlertSerializer
from pools.platform.rest import filters, generics


class AlertFilter(filters.FilterSet):
    open = filters.flag(
        method="filter_open", help_text="true: only open alerts; false: only ended ones."
    )
    level = filters.choice(*Level.values)
    code = filters.Filter(help_text="For example pool_nearly_full.")
    subject = filters.Filter(help_text="For example cluster/3.")

    def filter_open(self, rows: QuerySet[Alert], _name: str, is_open: bool) -> QuerySet[Alert]:
        return rows.filter(ended_at__isnull=is_open)


class Alerts(generics.ListView):
    """Alerts, open and ended ones."""

    needs = {"GET": ("pools.view_alert",)}
    queryset = Alert.objects.all()
    serializer_class = AlertSerializer
    filterset_class = AlertFilter
    ordering = "-id"


class AlertView(generics.DetailView):
    needs = {"GET": ("pools.view_alert",)}
    queryset = Alert.objects.all()
    serializer_class = AlertSerializer
    lookup_url_kwarg = "alert_id"

    def get(self, request: Request, alert_id: int) -> Response:
        """An alert."""
        return self.retrieve(request)
