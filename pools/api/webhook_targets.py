"""webhook-targets/: receivers of notices.

Only the response that creates or rotates a secret contains it.
"""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, extend_schema
from rest_framework.request import Request

from pools.core import block_fields, errors, object_reader
from pools.models import Delivery, WebhookTarget
from pools.models.notices import DeliveryEvent, DeliveryState
from pools.platform.alerts import outbox, targets
from pools.platform.rest import openapi, pagination, parsing, query, views

_FIELDS = ("name", "url", "ca", "codes", "enabled")
_IN = {
    "name": openapi.TEXT, "url": openapi.TEXT, "ca": openapi.TEXT,
    "codes": openapi.listed(openapi.TEXT), "enabled": openapi.FLAG,
}  # fmt: skip
_OUT = openapi.shape(
    "id name url codes enabled",
    id=openapi.WHOLE, **_IN, created_at=openapi.TIME, secret_made_at=openapi.TIME,
    failures=openapi.WHOLE, wait_until=openapi.TIME,
)  # fmt: skip
_SECRET = openapi.shape("id secret", **_OUT["properties"], secret=openapi.TEXT)
_STATES = list(DeliveryState.values)
_DELIVERY = openapi.shape(
    "id uid event state attempts",
    id=openapi.WHOLE, uid=openapi.TEXT, notice=openapi.nullable(openapi.WHOLE),
    event={"type": "string", "enum": list(DeliveryEvent.values)},
    state={"type": "string", "enum": _STATES}, attempts=openapi.WHOLE,
    last_status=openapi.nullable(openapi.WHOLE), last_error=openapi.TEXT, created_at=openapi.TIME,
    next_try_at=openapi.TIME, delivered_at=openapi.TIME,
)  # fmt: skip
_EXAMPLE = OpenApiExample(
    "all errors",
    {"name": "on-call", "url": "https://alerts.example.org/cadastre", "codes": []},
    request_only=True,
)
_LIST = openapi.says(
    "List webhook targets",
    {200: openapi.page(_OUT)},
    parameters=openapi.query(name="exactly", **openapi.PAGED),
)
_CREATE = openapi.says(
    "Create a webhook target; only this response contains its secret",
    {201: _SECRET},
    fails="409 411 413 415",
    examples=[_EXAMPLE],
    **openapi.body(openapi.shape("name url", **_IN)),
)
_ONE = openapi.says("Get a webhook target", {200: _OUT}, fails="404")
_CHANGE = openapi.says(
    "Change a webhook target",
    {200: _OUT},
    fails="404 409 411 413 415",
    **openapi.body(openapi.shape(**_IN) | openapi.SOMETHING),
)
_DELETE = openapi.says(
    "Delete a webhook target and its pending deliveries", {204: None}, fails="404"
)
_ROTATE = openapi.says(
    "Create a new secret; only this response contains it", {200: _SECRET}, fails="404 409"
)
_TEST = openapi.says("Send a test message", {202: _DELIVERY}, fails="404 409")
_DELIVERIES = openapi.says(
    "List the deliveries to a webhook target",
    {200: openapi.page(_DELIVERY)},
    fails="404",
    parameters=openapi.query(state=", ".join(_STATES), **openapi.PAGED),
)
_AGAIN = openapi.says("Retry a failed delivery", {202: _DELIVERY}, fails="404 409")


class WebhookTargets(views.View):
    needs = {"GET": ("pools.view_webhooktarget",), "POST": ("pools.add_webhooktarget",)}

    @extend_schema(**_LIST)
    def get(self, request: Request) -> views.Answer:
        parameters = query.Query(request)
        rows = WebhookTarget.objects.all()
        if name := parameters.text("name"):
            rows = rows.filter(name=name)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=_OUT["properties"],
                shape=lambda page: [_shape(WebhookTarget(**row)) for row in page],
            )
        )

    @extend_schema(**_CREATE)
    def post(self, request: Request) -> views.Answer:
        """The response is not stored under an Idempotency-Key, because it contains the secret."""
        fields = _parse_fields(parsing.fields(request, *_FIELDS), new=True)
        target, secret = targets.create(author=views.author(request), **fields)
        return views.answer(_shape(target) | {"secret": secret}, status=201)


class WebhookTargetView(views.View):
    needs = {
        "GET": ("pools.view_webhooktarget",),
        "PATCH": ("pools.change_webhooktarget",),
        "DELETE": ("pools.delete_webhooktarget",),
    }

    @extend_schema(**_ONE)
    def get(self, request: Request, target_id: int) -> views.Answer:
        return views.answer(_shape(_get(target_id)))

    @extend_schema(**_CHANGE)
    def patch(self, request: Request, target_id: int) -> views.Answer:
        changes = _parse_fields(parsing.changes(request, *_FIELDS), new=False)
        changed = targets.change(_get(target_id), changes, author=views.author(request))
        return views.answer(_shape(changed))

    @extend_schema(**_DELETE)
    def delete(self, request: Request, target_id: int) -> views.Answer:
        targets.delete(_get(target_id), author=views.author(request))
        return views.no_content()


class Rotation(views.View):
    needs = {"POST": ("pools.change_webhooktarget",)}

    @extend_schema(request=None, **_ROTATE)
    def post(self, request: Request, target_id: int) -> views.Answer:
        target = _get(target_id)
        secret = targets.rotate(target, author=views.author(request))
        return views.answer(_shape(target) | {"secret": secret})


class Test(views.View):
    needs = {"POST": ("pools.change_webhooktarget",)}

    @extend_schema(request=None, **_TEST)
    def post(self, request: Request, target_id: int) -> views.Answer:
        return views.answer(_delivery(outbox.write_test(_get(target_id))), status=202)


class Deliveries(views.View):
    needs = {"GET": ("pools.view_delivery",)}

    @extend_schema(**_DELIVERIES)
    def get(self, request: Request, target_id: int) -> views.Answer:
        parameters = query.Query(request)
        rows = Delivery.objects.filter(target=_get(target_id)).defer("body")
        if state := parameters.parse("state", query.choice(*_STATES)):
            rows = rows.filter(state=state)
        return views.answer(
            pagination.page(
                request,
                parameters,
                rows,
                orderings={"id": ("id",)},
                fields=_DELIVERY["properties"],
                shape=lambda page: [_delivery(Delivery(**row)) for row in page],
                default="-id",
            )
        )


class SendAgain(views.View):
    needs = {"POST": ("pools.change_webhooktarget",)}

    @extend_schema(request=None, **_AGAIN)
    def post(self, request: Request, target_id: int, delivery_id: int) -> views.Answer:
        delivery = Delivery.objects.filter(target=_get(target_id), pk=delivery_id).first()
        if delivery is None:
            raise errors.NotFound("There is no such object.")
        outbox.send_again(delivery)
        delivery.refresh_from_db()
        return views.answer(_delivery(delivery), status=202)


def _get(target_id: int) -> WebhookTarget:
    target = WebhookTarget.objects.filter(pk=target_id).first()
    if target is None:
        raise errors.NotFound("There is no such object.")
    return target


def _parse_fields(body: object_reader.Fields, *, new: bool) -> dict[str, Any]:
    parsers: dict[str, Any] = {
        "name": targets.parse_name,
        "url": targets.parse_url,
        "ca": targets.parse_ca,
        "codes": targets.parse_codes,
    }
    needed = {"name", "url"} if new else set()
    fields = {
        name: body.parse(name, parser)
        for name, parser in parsers.items()
        if name in needed or body.has(name)
    }
    if body.has("enabled"):
        fields["enabled"] = body.flag("enabled")
    body.report.raise_any()
    return fields


def _shape(target: WebhookTarget) -> dict[str, Any]:
    return {
        "id": target.pk,
        "name": target.name,
        "url": target.url,
        "ca": target.ca,
        "codes": target.codes,
        "enabled": target.enabled,
        "created_at": block_fields.time(target.created_at),
        "secret_made_at": block_fields.time(target.secret_made_at),
        "failures": target.failures,
        "wait_until": block_fields.time(target.wait_until),
    }


def _delivery(delivery: Delivery) -> dict[str, Any]:
    return {
        "id": delivery.pk,
        "uid": str(delivery.uid),
        "notice": delivery.notice_id,
        "event": str(delivery.event),
        "state": str(delivery.state),
        "attempts": delivery.attempts,
        "last_status": delivery.last_status,
        "last_error": delivery.last_error,
        "created_at": block_fields.time(delivery.created_at),
        "next_try_at": block_fields.time(delivery.next_try_at),
        "delivered_at": block_fields.time(delivery.delivered_at),
    }
