"""alerts/ and silences/: conditions that were raised as alerts, and those that nobody is told of for a time."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema, extend_schema_view
from rest_framework.request import Request
from rest_framework.response import Response

from pools.core import errors
from pools.models import Alert, Cluster, Level, Silence
from pools.platform.alerts import open_alerts, targets
from pools.platform.alerts.open_alerts import AlertSerializer
from pools.platform.rest import fields, filters, generics, schema
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


class Alerts(generics.ModelViewSet):
    """Alerts, open and ended ones."""

    queryset = Alert.objects.all()
    serializer_class = AlertSerializer
    filterset_class = AlertFilter
    ordering = "-id"
    lookup_url_kwarg = "alert_id"
    row_text = "An alert."

    @extend_schema(
        request=AcknowledgementSerializer,
        examples=schema.example(
            {
                "acknowledged": True,
                "acknowledged_until": "2026-12-07T08:00:00Z",
                "acknowledged_reason": "the new CIDR is ordered",
            },
            "until Monday",
        ),
    )
    def partial_update(self, request: Request, alert_id: int) -> Response:
        """Acknowledge an open alert, or withdraw its acknowledgement."""
        values = self.read(request, AcknowledgementSerializer)  # whole, not a part of it
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


@extend_schema_view(
    create=extend_schema(
        examples=schema.example(
            {"cluster": 1, "until": "2026-12-07T08:00:00Z", "reason": "it is moved"},
            "one cluster until Monday",
        )
    )
)
class Silences(generics.ModelViewSet):
    """Silences of alerts."""

    queryset = Silence.objects.all()
    serializer_class = SilenceSerializer
    lookup_url_kwarg = "silence_id"
    row_text = "A silence."

    def perform_create(self, values: dict[str, Any]) -> Silence:
        """Silence alerts."""
        cluster_id = values.pop("cluster_id", None)
        return open_alerts.create_silence(
            code=values.pop("code", ""),
            cluster=cluster_id and Cluster.objects.get(pk=cluster_id),
            by=self.author().actor,
            **values,
        )

    def perform_destroy(self, silence: Silence) -> None:
        """End a silence."""
        open_alerts.end_silence(silence)
