"""alerts/: conditions that were raised as alerts, open and ended ones."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.core import errors
from pools.models import Alert
from pools.models.alerts import Level
from pools.platform.alerts import open_alerts
from pools.platform.alerts.open_alerts import AlertSerializer
from pools.platform.rest import fields, filters, generics
from pools.platform.rest.serializers import Serializer


class AlertFilter(filters.FilterSet):
    open = filters.flag(
        field_name="ended_at",
        lookup_expr="isnull",
        help_text="true: only open alerts; false: only ended ones.",
    )
    acknowledged = filters.condition(
        open_alerts.ACKNOWLEDGED,
        help_text="true: only open alerts that are acknowledged; false: only others.",
    )
    level = filters.choice(*Level.values)
    code = filters.Filter(help_text="For example pool_nearly_full.")
    subject = filters.Filter(help_text="For example cluster/3.")


class AcknowledgementSerializer(Serializer):
    """The acknowledgement of an alert: with a reason, and until a time unless until the alert ends."""

    acknowledged = fields.FlagField()
    acknowledged_until = fields.TimeField(required=False)
    acknowledged_reason = fields.ReasonField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if attrs["acknowledged"] and "acknowledged_reason" not in attrs:
            raise errors.InvalidInput.for_field(
                "acknowledged_reason", "required", "say why the alert is acknowledged"
            )
        return attrs


class Alerts(generics.ListView):
    """Alerts, open and ended ones."""

    queryset = Alert.objects.all()
    serializer_class = AlertSerializer
    filterset_class = AlertFilter
    ordering = "-id"


class AlertView(generics.DetailView):
    queryset = Alert.objects.all()
    serializer_class = AlertSerializer
    lookup_url_kwarg = "alert_id"

    def get(self, request: Request, alert_id: int) -> Response:
        """An alert."""
        return self.retrieve(request)

    @extend_schema(
        request=AcknowledgementSerializer,
        responses=AlertSerializer,
        examples=[
            OpenApiExample(
                "until Monday",
                {
                    "acknowledged": True,
                    "acknowledged_until": "2026-12-07T08:00:00Z",
                    "acknowledged_reason": "the new CIDR is ordered",
                },
                request_only=True,
            )
        ],
    )
    def patch(self, request: Request, alert_id: int) -> Response:
        """Acknowledge an open alert, or withdraw its acknowledgement."""
        values = self.read(request, AcknowledgementSerializer)
        alert = self.get_object()
        if values["acknowledged"]:
            open_alerts.acknowledge(
                alert,
                by=self.author().actor,
                reason=values["acknowledged_reason"],
                until=values.get("acknowledged_until"),
            )
        else:
            open_alerts.withdraw_acknowledgement(alert)
        return self.respond(alert)
