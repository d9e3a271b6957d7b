"""alerts/ and silences/: conditions that were raised as alerts, and those that nobody is told of for a time."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.core import errors
from pools.models import Alert, Cluster, Level, Silence
from pools.platform.alerts import open_alerts, targets
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


class SilenceSerializer(Serializer):
    """A silence of the alerts with a code, of a cluster, or both."""

    id = fields.IntegerField(read_only=True)
    code = fields.TextField(targets.parse_code, required=False, help_text="Empty: every condition.")
    cluster = fields.ParsedField(
        targets.parse_cluster,
        source="cluster_id",
        schema={"type": "integer"},
        required=False,
        allow_null=True,
        help_text="The id of a cluster; null: of every cluster, and of none.",
    )
    until = fields.TimeField()
    reason = fields.ReasonField()
    made_by = fields.TextField(read_only=True)
    created_at = fields.TimeField(read_only=True)


class _SilenceView(generics.GenericView):
    queryset = Silence.objects.all()
    serializer_class = SilenceSerializer
    lookup_url_kwarg = "silence_id"


class Silences(_SilenceView, generics.ListView):
    @extend_schema(
        responses={201: SilenceSerializer},
        examples=[
            OpenApiExample(
                "one cluster until Monday",
                {"cluster": 1, "until": "2026-12-07T08:00:00Z", "reason": "it is moved"},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Silence alerts."""
        values = self.read(request)
        cluster_id = values.pop("cluster_id", None)
        return self.create(
            lambda: open_alerts.create_silence(
                code=values.pop("code", ""),
                cluster=cluster_id and Cluster.objects.get(pk=cluster_id),
                by=self.author().actor,
                **values,
            )
        )


class SilenceView(_SilenceView, generics.DetailView):
    def delete(self, request: Request, silence_id: int) -> Response:
        """End a silence."""
        open_alerts.end_silence(self.get_object())
        return Response(status=204)
