"""Building blocks of the OpenAPI description: types, shapes, parameters, responses."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiParameter, OpenApiResponse

Schema = dict[str, Any]


class _Token(OpenApiAuthenticationExtension):
    target_class = "pools.platform.rest.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> Schema:
        text = "`Authorization: Token …`; `manage.py token USER` makes one."
        return {"type": "apiKey", "in": "header", "name": "Authorization", "description": text}


class _Session(OpenApiAuthenticationExtension):
    target_class = "pools.platform.rest.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> Schema:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


TEXT: Schema = {"type": "string"}
FLAG: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer"}
TIME: Schema = {"type": "string", "format": "date-time", "nullable": True}
CIDR: Schema = {"type": "string", "format": "cidr", "example": "10.20.0.0/16"}
IP: Schema = {"type": "string", "format": "ip", "nullable": True, "example": "2001:db8::1"}
SOMETHING: Schema = {"minProperties": 1}  # `{}` would change nothing and is refused
RANGE: Schema = {"type": "string", "format": "ip-range", "example": "10.20.0.0-10.20.0.99"}
NUMBER: Schema = {"type": "string", "format": "decimal", "example": "65534"}


def shape(required: str = "", /, **properties: Schema) -> Schema:
    schema: Schema = {"type": "object", "properties": properties}
    return schema | ({"required": required.split()} if required else {})


def listed(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def page(items: Schema) -> Schema:
    link: Schema = {"type": "string", "format": "uri", "nullable": True}
    return shape("next previous results", next=link, previous=link, results=listed(items))


def nullable(schema: Schema) -> Schema:
    return schema | {"nullable": True}


PROBLEM = shape(
    "type title status detail code request_id errors",
    type=TEXT,
    title=TEXT,
    status=WHOLE,
    detail=TEXT,
    code=TEXT,
    request_id=TEXT,
    errors=listed(shape("field code message", field=TEXT, code=TEXT, message=TEXT, value=TEXT)),
)

_REASONS = {
    400: "the input is not valid",
    401: "missing or invalid token",
    403: "the user lacks the permission",
    404: "the object does not exist",
    409: "the current state of the register does not allow it",
    411: "the length of the body must be known",
    412: "the object changed since it was read",
    413: "the body is too large",
    415: "the body is not JSON",
    422: "the Idempotency-Key was used with another request",
    502: "the request to the cluster failed",
    503: "the database is unavailable; try again",
}


def says(
    summary: str, answers: dict[int, Schema | None], *, fails: str = "", **more: Any
) -> Schema:
    """Return the arguments of `extend_schema`; `fails` are statuses besides 400, 401, 403 and 503."""
    responses: dict[Any, Any] = {}
    for status, shape in answers.items():
        responses[status if shape is None else (status, "application/json")] = (
            OpenApiResponse(description="done") if shape is None else shape
        )
    for status in sorted({400, 401, 403, 503, *map(int, fails.split())}):
        responses[status, "application/problem+json"] = OpenApiResponse(
            PROBLEM, description=_REASONS[status]
        )
    words = "".join(char if char.isalnum() else " " for char in summary).split()
    name = "_".join(words[:6]).lower()
    return {
        "operation_id": name,
        "summary": summary,
        "description": "",
        "responses": responses,
        **more,
    }


def body(shape: Schema) -> dict[str, Any]:
    return {"request": {"application/json": shape}}


def query(**names: str) -> list[OpenApiParameter]:
    return [
        OpenApiParameter(name, str, OpenApiParameter.QUERY, description=text)
        for name, text in names.items()
    ]


IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="The same key and body give the same answer for 24 hours.",
)
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description='The pool\'s ETag, such as "3".'
)
PAGED = {
    "limit": "rows on a page, 1 to 1000 (100)",
    "cursor": "from `next` or `previous`",
    "ordering": "a column, with - in front from its end",
    "fields": "only these fields, comma separated",
}
WRITES = "409 411 413 415 422"


def writes(summary: str, answers: dict[int, Schema | None], shape: Schema, **more: Any) -> Schema:
    parameters = [IDEMPOTENCY_KEY, *more.pop("parameters", [])]
    fails = f"{WRITES} {more.pop('fails', '')}"
    return says(summary, answers, fails=fails, parameters=parameters, **body(shape), **more)
