"""What drf-spectacular cannot know of our endpoints: the problems that each may answer, and the headers it reads."""

import inspect
from collections.abc import Callable
from typing import Any

from django.urls import reverse
from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.plumbing import ResolvedComponent, force_instance
from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from pools.platform.rest import attributes, generics, keyset
from pools.platform.rest.filters import Endpoint
from pools.platform.rest.serializers import is_optional

PROBLEM_TYPE = "application/problem+json"
IDEMPOTENCY_KEY = OpenApiParameter(
    "Idempotency-Key", str, OpenApiParameter.HEADER,
    description="The same key and body give the same answer for 24 hours.",
)  # fmt: skip
IF_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description='The ETag of the object, such as "3".'
)
_STRING: dict[str, Any] = {"type": "string"}
_FIELD_PROBLEM = {
    "type": "object",
    "required": ["field", "code", "message", "value"],
    "properties": dict.fromkeys(("field", "code", "message", "value"), _STRING),
}
_PROBLEM = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "code", "request_id", "errors"],
    "properties": {
        **dict.fromkeys(("type", "title", "detail", "code", "request_id"), _STRING),
        "status": {"type": "integer"},
        "errors": {"type": "array", "items": _FIELD_PROBLEM},
    },
}
_BODIES = {"create": "create_serializer_class", "partial_update": "change_serializer_class"}
_ALWAYS = (400, 401, 403, 503)
_OF_BODIES = (409, 411, 413, 415)
_DESCRIPTIONS = {
    400: "The input is not valid.",
    401: "There is no token, or it is not valid.",
    403: "The user may not do that.",
    404: "There is no such object.",
    409: "The present state of the register forbids it.",
    411: "The length of the body must be known.",
    412: "The object changed since it was read.",
    413: "The body is too large.",
    415: "The body is not JSON.",
    422: "The Idempotency-Key was used with another request.",
    502: "The cluster did not do what was asked.",
    503: "The database is away; try again.",
}


def _filters_attributes(view: Any) -> bool:
    filterset = None if getattr(view, "detail", False) else getattr(view, "filterset_class", None)
    return filterset is not None and issubclass(filterset, attributes.AttributeFilterSet)


def _compares_versions(view: Any) -> bool:
    action = getattr(view, "action", None)
    return getattr(view, "versioned", False) and action in {"retrieve", "partial_update", "destroy"}


def _heeds_keys(view: Any, method: str) -> bool:
    """Return True if the method heeds an Idempotency-Key, as ViewSet.create does for each `perform_create`."""
    if getattr(view, "action", "") == "create" and hasattr(view, "perform_create"):
        return True
    return method in getattr(view, "idempotent", ())


def example(body: Any, name: str = "example") -> Callable[[Endpoint], Endpoint]:
    """Declare an example of the body of an endpoint; two of them need two names."""

    def declare(endpoint: Endpoint) -> Endpoint:
        examples = vars(endpoint).setdefault("examples", [])
        examples.insert(0, OpenApiExample(name, body, request_only=True))
        return endpoint

    return declare


class Schema(AutoSchema):
    """An operation: the first line of the method's docstring is its summary, the rest its description."""

    def get_paginated_name(self, serializer_name: str) -> str:
        is_one_page = getattr(self.view, "pagination_class", None) is keyset.OnePage
        name: str = super().get_paginated_name(serializer_name)
        return name.removeprefix("Paginated") if is_one_page else name

    def get_summary(self) -> str | None:
        return self._documentation()[0]

    def get_description(self) -> str:  # type: ignore[override]  # as drf-spectacular has it
        return self._documentation()[1]

    def _documentation(self) -> tuple[str, str]:
        if getattr(self.view, "action", "") == "retrieve":
            text = getattr(self.view, "row_text", "")
        else:
            hook = self._hook()
            text = inspect.getdoc(hook) if hook else super().get_description() or ""
        first, _, rest = text.partition("\n")
        return first.rstrip("."), rest.strip()

    def _hook(self) -> Any:
        """The method of the view set that says what the kit's own endpoint does."""
        return getattr(self.view, generics.HOOKS.get(getattr(self.view, "action", ""), ""), None)

    def _declared(self, name: str, default: Any) -> Any:
        """What a decorator has declared of the endpoint: its `parameters` or `examples`."""
        action = getattr(self.view, "action", None) or self.method.lower()
        return getattr(self._hook() or getattr(self.view, action, None), name, default)

    def get_examples(self) -> list[OpenApiExample]:
        examples: list[OpenApiExample] = self._declared("examples", [])
        return examples

    def get_override_parameters(self) -> list[Any]:
        declared = self._declared("parameters", {})
        parameters = [declared[name].describe(name) for name in declared]
        if _heeds_keys(self.view, self.method):
            parameters.append(IDEMPOTENCY_KEY)
        if _compares_versions(self.view) and self.method != "GET":
            parameters.append(IF_MATCH)
        if self.method == "GET" and _filters_attributes(self.view):
            parameters.append(attributes.CUSTOM_FIELD_FILTERS)
        return parameters

    def _get_serializer_field_meta(self, field: Any, direction: Any) -> dict[str, Any]:
        """Without empty defaults: a client that sends them is refused where an empty text is."""
        meta: dict[str, Any] = super()._get_serializer_field_meta(field, direction)  # type: ignore[no-untyped-call]
        if meta.get("default") == "":
            del meta["default"]
        return meta

    def _map_basic_serializer(self, serializer: Any, direction: Any) -> dict[str, Any]:
        """A field of an answer that says `required=False` may be absent."""
        schema: dict[str, Any] = super()._map_basic_serializer(serializer, direction)  # type: ignore[no-untyped-call]
        optional = {
            name for name, field in force_instance(serializer).fields.items() if is_optional(field)
        }
        example = getattr(force_instance(serializer), "example", None)
        if direction == "request" and example is not None:
            schema["example"] = dict(example)
        if direction == "response" and "required" in schema:
            schema["required"] = [name for name in schema["required"] if name not in optional]
        return schema

    def get_request_serializer(self) -> Any:
        """The serializer that reads the body of a create or a change."""
        attribute = _BODIES.get(getattr(self.view, "action", ""), "")
        return getattr(self.view, attribute, None) or super().get_request_serializer()

    def _get_response_bodies(self, direction: Any = "response") -> dict[str, Any]:
        responses: dict[str, Any] = super()._get_response_bodies(direction)
        problem = self._component("Problem", ResolvedComponent.SCHEMA, _PROBLEM)
        for status in sorted(self._problem_statuses()):
            content = {PROBLEM_TYPE: {"schema": problem}}
            response = {"description": _DESCRIPTIONS[status], "content": content}
            responses[str(status)] = self._component(
                f"Problem{status}", ResolvedComponent.RESPONSE, response
            )
        return responses

    def _component(self, name: str, kind: str, schema: dict[str, Any]) -> dict[str, Any]:
        """A reference to a component that many operations share."""
        component = ResolvedComponent(name, kind, schema, name)
        self.registry.register_on_missing(component)
        reference: dict[str, Any] = component.ref
        return reference

    def _problem_statuses(self) -> set[int]:
        statuses = {*_ALWAYS, *getattr(self.view, "problem_statuses", ())}
        if "{" in self.path:
            statuses.add(404)
        if _compares_versions(self.view) or self.method in {"PATCH", "DELETE"}:
            statuses.add(412)
        if self.method in {"POST", "PUT", "PATCH"}:
            statuses |= {*_OF_BODIES}
        if self.method == "DELETE":
            statuses.add(409)
        if _heeds_keys(self.view, self.method):
            statuses.add(422)
        return statuses


class _Token(OpenApiAuthenticationExtension):
    target_class = "pools.platform.rest.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        text = f"[Create a token]({reverse('admin:knox_authtoken_create')}) for yourself."
        return {"type": "http", "scheme": "bearer", "description": text}


class _Session(OpenApiAuthenticationExtension):
    target_class = "pools.platform.rest.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> dict[str, Any]:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}
