"""webhook-targets/: who receives alerts; a secret is in the answer that made it, and nowhere else."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.core import errors
from pools.models import Delivery, DeliveryEvent, DeliveryState, Level, TargetKind, WebhookTarget
from pools.platform.alerts import outbox, targets
from pools.platform.rest import fields, filters, generics, schema
from pools.platform.rest.serializers import Representation, Serializer


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
    ca = fields.TextField(targets.parse_ca, required=False)
    codes = fields.ListField(child=fields.TextField(targets.parse_code), required=False)
    enabled = fields.FlagField(required=False)
    kind = fields.ChoiceField(TargetKind.values, read_only=True)
    alerts = fields.FlagField(required=False)
    least_level = fields.ChoiceField(
        Level.values, required=False, help_text="Alerts of this level and of more severe ones."
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
    event = fields.ChoiceField(DeliveryEvent.values)
    log_event = fields.IntegerField(
        allow_null=True, help_text="The id of the event that it is about."
    )
    state = fields.ChoiceField(DeliveryState.values)
    attempts = fields.IntegerField()
    last_status = fields.IntegerField(allow_null=True)
    last_error = fields.TextField()
    created_at = fields.TimeField()
    next_try_at = fields.TimeField(allow_null=True)
    delivered_at = fields.TimeField(allow_null=True)


class WebhookTargetFilter(filters.FilterSet):
    name = filters.Filter(help_text="The exact name.")


class DeliveryFilter(filters.FilterSet):
    state = filters.choice(*DeliveryState.values)
    event = filters.choice(*DeliveryEvent.values)


class _TargetView(generics.GenericView):
    queryset = WebhookTarget.objects.all()
    serializer_class: Any = WebhookTargetSerializer
    lookup_url_kwarg = "target_id"


class WebhookTargets(_TargetView, generics.ListView):
    filterset_class = WebhookTargetFilter

    @extend_schema(
        responses={201: WebhookSecretSerializer},
        examples=[
            OpenApiExample(
                "all errors",
                {"name": "on-call", "url": "https://alerts.example.org/cadastre", "codes": []},
                request_only=True,
            )
        ],
    )
    def post(self, request: Request) -> Response:
        """Create a target; only this answer contains its secret, by which webhooks are signed.

        No answer is stored under an Idempotency-Key, because it contains the secret.
        """
        values = self.read(request)
        target, secret = targets.create(author=self.author(), **values)
        return Response(self.represent(target) | {"secret": secret}, status=201)


class WebhookTargetView(_TargetView, generics.DetailView):
    @extend_schema(examples=schema.example({"enabled": False}))
    def patch(self, request: Request, target_id: int) -> Response:
        """Change a target."""
        values = self.read(request, partial=True)
        return self.respond(targets.change(self.get_object(), values, author=self.author()))

    def delete(self, request: Request, target_id: int) -> Response:
        """Delete a target and its pending messages."""
        targets.delete(self.get_object(), author=self.author())
        return Response(status=204)


class _Action(_TargetView):
    """A POST to the URL of a target that is no new target."""

    needs = {"POST": ("pools.change_webhooktarget",)}


class Rotation(_Action):
    @extend_schema(request=None, responses=WebhookSecretSerializer)
    def post(self, request: Request, target_id: int) -> Response:
        """Replace the secret of a target; only this answer contains it."""
        target = self.get_object()
        secret = targets.rotate(target, author=self.author())
        return Response(self.represent(target) | {"secret": secret})


class Test(_Action):
    @extend_schema(request=None, responses={202: DeliverySerializer})
    def post(self, request: Request, target_id: int) -> Response:
        """Send a test message."""
        delivery = outbox.write_test(self.get_object())
        return Response(DeliverySerializer(delivery).data, status=202)


class Deliveries(generics.ListView):
    """Messages to a target, the newest first."""

    queryset = Delivery.objects.defer("body")
    serializer_class = DeliverySerializer
    filterset_class = DeliveryFilter
    ordering = "-id"

    def get_queryset(self) -> QuerySet[Delivery]:
        return super().get_queryset().filter(target=_get_target(self.kwargs["target_id"]))


class SendAgain(generics.GenericView):
    needs = {"POST": ("pools.change_webhooktarget",)}
    queryset = Delivery.objects.all()
    serializer_class = DeliverySerializer
    lookup_url_kwarg = "delivery_id"

    @extend_schema(request=None, responses={202: DeliverySerializer})
    def post(self, request: Request, target_id: int, delivery_id: int) -> Response:
        """Send a message again after Cadastre gave it up."""
        delivery = self.get_object()
        outbox.send_again(delivery)
        delivery.refresh_from_db()
        return self.respond(delivery, status=202)

    def get_queryset(self) -> QuerySet[Delivery]:
        return super().get_queryset().filter(target=self.kwargs["target_id"])


def _get_target(target_id: int) -> WebhookTarget:
    target = WebhookTarget.objects.filter(pk=target_id).first()
    if target is None:
        raise errors.NotFound("There is no such object.")
    return target
