"""alerts/, silences/ and webhook-targets/: alerts, which nobody is told of for a time, and who receives them."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools import models
from pools.core import errors
from pools.platform.alerts import open_alerts, outbox, targets
from pools.platform.alerts.open_alerts import AlertSerializer
from pools.platform.outbound import credentials
from pools.platform.rest import fields, filters, generics, schema
from pools.platform.rest.serializers import Representation, Serializer


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
    level = filters.choice(*models.Level.values)
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

    queryset = models.Alert.objects.all()
    serializer_class = AlertSerializer
    filterset_class = AlertFilter
    ordering = "-id"
    lookup_url_kwarg = "alert_id"
    row_text = "An alert."

    @extend_schema(request=AcknowledgementSerializer)
    @schema.example(
        {
            "acknowledged": True,
            "acknowledged_until": "2026-12-07T08:00:00Z",
            "acknowledged_reason": "the new CIDR is ordered",
        },
        "until Monday",
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


class Silences(generics.ModelViewSet):
    """Silences of alerts."""

    queryset = models.Silence.objects.all()
    serializer_class = SilenceSerializer
    lookup_url_kwarg = "silence_id"
    row_text = "A silence."

    @schema.example(
        {"cluster": 1, "until": "2026-12-07T08:00:00Z", "reason": "it is moved"},
        "one cluster until Monday",
    )
    def perform_create(self, values: dict[str, Any]) -> models.Silence:
        """Silence alerts."""
        cluster_id = values.pop("cluster_id", None)
        return open_alerts.create_silence(
            code=values.pop("code", ""),
            cluster=cluster_id and models.Cluster.objects.get(pk=cluster_id),
            by=self.author().actor,
            **values,
        )

    def perform_destroy(self, silence: models.Silence) -> None:
        """End a silence."""
        open_alerts.end_silence(silence)


class WebhookTargetSerializer(Serializer):
    """A receiver of alerts (`codes`: of these conditions; empty: of all) and of events of the log.

    The scheme of its URL says how: https (signed), mailto, or one of Apprise such as slack.
    """

    id = fields.IntegerField(read_only=True)
    name = fields.TextField(targets.parse_name)
    url = fields.TextField(
        targets.parse_url,
        help_text="Answers have *** instead of the query, or of all that follows the scheme of Apprise,"
        " which is a secret; sent so, it stays.",
    )
    ca = fields.TextField(credentials.parse_ca, required=False)
    codes = fields.ListField(child=fields.TextField(targets.parse_code), required=False)
    enabled = fields.FlagField(required=False)
    kind = fields.ChoiceField(models.TargetKind.values, read_only=True)
    alerts = fields.FlagField(required=False)
    least_level = fields.ChoiceField(
        models.Level.values,
        required=False,
        help_text="Alerts of this level and of more severe ones.",
    )
    digest = fields.FlagField(
        required=False,
        help_text="One message a day about the open alerts, instead of one about each change.",
    )
    user = fields.IntegerField(
        source="user_id",
        read_only=True,
        allow_null=True,
        help_text="Whose own it is; null: shared.",
    )
    event_types = fields.ListField(
        child=fields.TextField(targets.parse_type),
        min_length=0,
        max_length=targets.MOST_TYPES,
        required=False,
        help_text="Types of events such as pool.created, first words such as pool, or *; empty: none.",
    )
    clusters = fields.ListField(
        child=fields.ParsedField(targets.parse_cluster, schema={"type": "integer"}),
        min_length=0,
        max_length=targets.MOST_OBJECTS,
        required=False,
        help_text="Only alerts and events of these clusters.",
    )
    event_pools = fields.ListField(
        child=fields.ParsedField(targets.parse_pool, schema={"type": "integer"}),
        min_length=0,
        max_length=targets.MOST_OBJECTS,
        required=False,
        help_text="Only events of these pools.",
    )
    event_position = fields.IntegerField(read_only=True)
    created_at = fields.TimeField(read_only=True)
    secret_made_at = fields.TimeField(read_only=True)
    failures = fields.IntegerField(read_only=True)
    accepted_at = fields.TimeField(read_only=True, allow_null=True)
    switched_off_at = fields.TimeField(read_only=True, allow_null=True)
    wait_until = fields.TimeField(read_only=True, allow_null=True)


class WebhookSecretSerializer(WebhookTargetSerializer):
    secret = fields.TextField(read_only=True)


class DeliverySerializer(Representation):
    """One message to a target."""

    id = fields.IntegerField()
    uid = fields.TextField()
    alert = fields.IntegerField(source="alert_id", allow_null=True)
    event = fields.ChoiceField(models.DeliveryEvent.values)
    log_event = fields.IntegerField(
        allow_null=True, help_text="The id of the event that it is about."
    )
    state = fields.ChoiceField(models.DeliveryState.values)
    attempts = fields.IntegerField()
    last_status = fields.IntegerField(allow_null=True)
    last_error = fields.TextField()
    created_at = fields.TimeField()
    next_try_at = fields.TimeField(allow_null=True)
    delivered_at = fields.TimeField(allow_null=True)


class WebhookTargetFilter(filters.FilterSet):
    name = filters.Filter(help_text="The exact name.")


class DeliveryFilter(filters.FilterSet):
    state = filters.choice(*models.DeliveryState.values)
    event = filters.choice(*models.DeliveryEvent.values)


_CHANGE = "pools.change_webhooktarget"


class WebhookTargets(generics.ModelViewSet):
    """Receivers of alerts and events."""

    queryset = models.WebhookTarget.objects.all()
    serializer_class = WebhookTargetSerializer
    filterset_class = WebhookTargetFilter
    lookup_url_kwarg = "target_id"
    row_text = "A receiver of alerts and events."

    @extend_schema(responses={201: WebhookSecretSerializer})
    @schema.example(
        {"name": "on-call", "url": "https://alerts.example.org/cadastre", "codes": []},
        "all errors",
    )
    def create(self, request: Request) -> Response:
        """Create a target; only this answer contains its secret, by which webhooks are signed.

        No answer is stored under an Idempotency-Key, because it contains the secret.
        """
        values = self.read(request)
        target, secret = targets.create(author=self.author(), **values)
        return Response(self.represent(target) | {"secret": secret}, status=201)

    @schema.example({"enabled": False})
    def perform_update(
        self, target: models.WebhookTarget, values: dict[str, Any]
    ) -> models.WebhookTarget:
        """Change a target."""
        return targets.change(target, values, author=self.author())

    def perform_destroy(self, target: models.WebhookTarget) -> None:
        """Delete a target and its pending messages."""
        targets.delete(target, author=self.author())

    @extend_schema(request=None, responses=WebhookSecretSerializer)
    @generics.post_action(_CHANGE, url_name="webhook-target-rotate")
    def rotate(self, request: Request, target_id: int) -> Response:
        """Replace the secret of a target; only this answer contains it."""
        target = self.get_object()
        secret = targets.rotate(target, author=self.author())
        return Response(self.represent(target) | {"secret": secret})

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @generics.post_action(_CHANGE, url_name="webhook-target-test")
    def test(self, request: Request, target_id: int) -> Response:
        """Send a test message."""
        delivery = outbox.write_test(self.get_object())
        return Response(DeliverySerializer(delivery).data, status=202)


class Deliveries(generics.ListViewSet):
    """Messages to a target, the newest first."""

    queryset = models.Delivery.objects.defer("body")
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilter
    ordering = "-id"
    lookup_url_kwarg = "delivery_id"

    def get_queryset(self) -> QuerySet[models.Delivery]:
        target_id = self.kwargs["target_id"]
        if not models.WebhookTarget.objects.filter(pk=target_id).exists():
            raise errors.NotFound(self.absent)
        return super().get_queryset().filter(target=target_id)

    @extend_schema(request=None, responses={202: DeliverySerializer})
    @generics.post_action(_CHANGE, url_name="webhook-delivery-send")
    def send(self, request: Request, target_id: int, delivery_id: int) -> Response:
        """Send a message again after Cadastre gave it up."""
        delivery = self.get_object()
        outbox.send_again(delivery)
        delivery.refresh_from_db()
        return self.respond(delivery, status=202)
