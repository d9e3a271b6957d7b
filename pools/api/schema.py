"""What OpenAPI says of each endpoint: shapes, parameters, examples (the examples run as tests)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.extensions import OpenApiAuthenticationExtension
from drf_spectacular.openapi import AutoSchema
from drf_spectacular.utils import OpenApiExample, OpenApiParameter, OpenApiResponse

Schema = dict[str, Any]


class _Token(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "pools.api.authentication.TokenAuthentication"
    name = "token"

    def get_security_definition(self, auto_schema: AutoSchema) -> Schema:
        text = "`Authorization: Token …`; `manage.py token USER` makes one."
        return {"type": "apiKey", "in": "header", "name": "Authorization", "description": text}


class _Session(OpenApiAuthenticationExtension):  # type: ignore[no-untyped-call]
    target_class = "pools.api.authentication.SessionAuthentication"
    name = "session"

    def get_security_definition(self, auto_schema: AutoSchema) -> Schema:
        return {"type": "apiKey", "in": "cookie", "name": "sessionid"}


_TEXT: Schema = {"type": "string"}
_FLAG: Schema = {"type": "boolean"}
_WHOLE: Schema = {"type": "integer"}
_TIME: Schema = {"type": "string", "format": "date-time", "nullable": True}
_CIDR: Schema = {"type": "string", "format": "cidr", "example": "10.20.0.0/16"}
_ADDRESS: Schema = {"type": "string", "format": "ip", "nullable": True, "example": "2001:db8::1"}
_SOMETHING: Schema = {"minProperties": 1}  # `{}` changes nothing and is refused
_RANGE: Schema = {"type": "string", "format": "ip-range", "example": "10.20.0.0-10.20.0.99"}
_NUMBER: Schema = {"type": "string", "format": "decimal", "example": "65534"}


def _object(required: str = "", /, **properties: Schema) -> Schema:
    made: Schema = {"type": "object", "properties": properties}
    return made | ({"required": required.split()} if required else {})


def _list(of: Schema) -> Schema:
    return {"type": "array", "items": of}


def _page(of: Schema) -> Schema:
    link: Schema = {"type": "string", "format": "uri", "nullable": True}
    return _object("next previous results", next=link, previous=link, results=_list(of))


def _null(of: Schema) -> Schema:
    return of | {"nullable": True}


_HOLDER_IN = _object("kind id", kind=_TEXT, id=_TEXT, uid=_TEXT)
_BLOCK = _object(
    "id cidr address pool cluster holder org env state allocated_at cooldown_until",
    id=_WHOLE, cidr=_CIDR, address=_ADDRESS, family={"type": "integer", "enum": [4, 6]},
    pool=_TEXT, pool_id=_WHOLE, cluster=_TEXT, holder=_HOLDER_IN, org=_TEXT, env=_TEXT,
    state={"type": "string", "enum": ["held", "cooling", "available"]}, withheld=_FLAG,
    allocated_at=_TIME, released_at=_TIME, cooldown_until=_TIME,
)  # fmt: skip
_FAMILY = _null(
    _object(
        "mask_size cidrs",
        mask_size=_WHOLE,
        cidrs=_list(_object("cidr", cidr=_CIDR, reserved_ranges=_list(_RANGE))),
    )
)
_USAGE = _object(
    "capacity held cooling reserved free ratio approximate",
    capacity=_NUMBER, held=_NUMBER, cooling=_NUMBER, reserved=_NUMBER, free=_NUMBER,
    ratio={"type": "number"}, approximate=_FLAG,
)  # fmt: skip
_TEXTS: Schema = {"type": "object", "additionalProperties": _TEXT}
_CATEGORY: Schema = {"type": "string", "enum": ["pod", "node", "instance", "ipv4", "vm"]}
_COOLDOWN: Schema = {"type": "integer", "minimum": 0, "maximum": 315360000}
_POOL_CHANGE = {
    "cooldown_seconds": _COOLDOWN, "description": _TEXT, "ipv4": _FAMILY, "ipv6": _FAMILY,
    "annotations": _TEXTS, "labels": _TEXTS,
}  # fmt: skip
_POOL_IN = _object(
    "cluster name category",
    cluster=_TEXT, name=_TEXT, category=_CATEGORY, allow_first_ip=_FLAG, allow_last_ip=_FLAG,
    **_POOL_CHANGE,
)  # fmt: skip
_POOL = _object(
    "id cluster name category cooldown_seconds ipv4 ipv6 version utilization",
    **dict(_POOL_IN["properties"]),
    id=_WHOLE,
    version=_WHOLE,
    created_at=_TIME,
    utilization=_object(ipv4=_USAGE, ipv6=_USAGE),
)
_CLUSTER = _object(
    "id name",
    id=_WHOLE, name=_TEXT, cluster_prefix=_null(_CIDR), instance_gateway=_ADDRESS,
    instance_mtu=_WHOLE, instance_dns=_list(_ADDRESS), description=_TEXT, created_at=_TIME,
)  # fmt: skip
_REQUEST = _object(
    "id state pool cluster holder",
    id=_WHOLE, state={"type": "string", "enum": ["pending", "fulfilled", "cancelled"]}, pool=_TEXT,
    pool_id=_WHOLE, cluster=_TEXT, holder=_HOLDER_IN, org=_TEXT, env=_TEXT, attempts=_WHOLE,
    message=_TEXT, block_ids=_list(_WHOLE), created_at=_TIME, next_try_at=_TIME, ended_at=_TIME,
)  # fmt: skip
_HOLDER_OUT = _object(kind=_TEXT, id=_TEXT, uid=_TEXT)
_TENURE = _object(
    "cluster space pool block state holder org env since until",
    cluster=_TEXT, space=_TEXT, pool=_TEXT, block=_CIDR, state=_TEXT, holder=_HOLDER_OUT,
    org=_TEXT, env=_TEXT, since=_TIME, until=_TIME,
)  # fmt: skip
_SNAPSHOT: Schema = {"type": "object", "nullable": True, "additionalProperties": True}
_EVENT = _object(
    "id at type",
    id=_WHOLE, at=_TIME, type=_TEXT, cluster=_TEXT, pool=_TEXT, pool_id=_null(_WHOLE), block=_TEXT,
    holder=_HOLDER_OUT, org=_TEXT, env=_TEXT, actor=_TEXT, request_id=_TEXT, reason=_TEXT,
    message=_TEXT, before=_SNAPSHOT, after=_SNAPSHOT,
)  # fmt: skip
_ENVIRONMENT = _object(
    "cluster org env status",
    id=_WHOLE, cluster=_TEXT, org=_TEXT, env=_TEXT,
    status={"type": "string", "enum": ["ok", "degraded"]}, degraded=_FLAG, reason=_TEXT,
    message=_TEXT, since=_TIME,
)  # fmt: skip
_CIDR_OUT = _object(
    "id cidr reserved_ranges",
    id=_WHOLE,
    cidr=_CIDR,
    reserved_ranges=_list(_object(id=_WHOLE, range=_RANGE, reason=_TEXT)),
)
_REPORTS = _object(
    "reports",
    reports=_list(
        _object(
            document=_WHOLE, name=_TEXT, pool_id=_null(_WHOLE),
            verdict={"type": "string", "enum": ["created", "changed", "unchanged", "refused"]},
            problems=_list({"type": "object"}),
        )
    ),
)  # fmt: skip
# What `fields=` of a list may name.
(BLOCK_FIELDS, CLUSTER_FIELDS, ENVIRONMENT_FIELDS, EVENT_FIELDS, POOL_FIELDS, REQUEST_FIELDS) = (
    tuple(shape["properties"])
    for shape in (_BLOCK, _CLUSTER, _ENVIRONMENT, _EVENT, _POOL, _REQUEST)
)
_PROBLEM = _object(
    "type title status detail code request_id errors",
    type=_TEXT, title=_TEXT, status=_WHOLE, detail=_TEXT, code=_TEXT, request_id=_TEXT,
    errors=_list(_object("field code message", field=_TEXT, code=_TEXT, message=_TEXT, value=_TEXT)),
)  # fmt: skip

_REASONS = {
    400: "the input is not valid",
    401: "no or no valid token",
    403: "the user may not do that",
    404: "there is no such object",
    409: "the register's present state forbids it",
    411: "the length of the body must be known",
    412: "the object changed since it was read",
    413: "the body is too large",
    415: "the body is not JSON",
    422: "the Idempotency-Key was used with another request",
    503: "the database is away; try again",
}


def _says(
    summary: str, answers: dict[int, Schema | None], *, fails: str = "", **more: Any
) -> Schema:
    """The arguments of `extend_schema`; `fails` are further statuses beside 400 401 403 503."""
    responses: dict[Any, Any] = {}
    for status, shape in answers.items():
        responses[status if shape is None else (status, "application/json")] = (
            OpenApiResponse(description="done") if shape is None else shape
        )
    for status in sorted({400, 401, 403, 503, *map(int, fails.split())}):
        responses[status, "application/problem+json"] = OpenApiResponse(
            _PROBLEM, description=_REASONS[status]
        )
    words = "".join(char if char.isalnum() else " " for char in summary).split()
    name = "_".join(words[:6]).lower()
    return {
        "operation_id": name, "summary": summary, "description": "", "responses": responses, **more
    }  # fmt: skip


def _body(shape: Schema) -> dict[str, Any]:
    return {"request": {"application/json": shape}}


def _query(**names: str) -> list[OpenApiParameter]:
    return [
        OpenApiParameter(name, str, OpenApiParameter.QUERY, description=text)
        for name, text in names.items()
    ]


_KEY = OpenApiParameter(
    "Idempotency-Key",
    str,
    OpenApiParameter.HEADER,
    description="The same key and body give the same answer for 24 hours.",
)
_MATCH = OpenApiParameter(
    "If-Match", str, OpenApiParameter.HEADER, description='The pool\'s ETag, such as "3".'
)
_PAGED = {
    "limit": "rows on a page, 1 to 1000 (100)",
    "cursor": "from `next` or `previous`",
    "ordering": "a column, with - in front from its end",
    "fields": "only these fields, comma separated",
}
_WRITES = "409 411 413 415 422"


def _writes(summary: str, answers: dict[int, Schema | None], shape: Schema, **more: Any) -> Schema:
    parameters = [_KEY, *more.pop("parameters", [])]
    fails = f"{_WRITES} {more.pop('fails', '')}"
    return _says(summary, answers, fails=fails, parameters=parameters, **_body(shape), **more)


CLUSTERS = _says("Clusters", {200: _page(_CLUSTER)}, parameters=_query(name="by name", **_PAGED))
CLUSTER_CREATE = _writes(
    "Register a cluster",
    {201: _CLUSTER},
    _object(
        "name", name=_TEXT, cluster_prefix=_CIDR, node_prefix=_CIDR, instance_prefix=_CIDR,
        description=_TEXT,
    ),
    examples=[
        OpenApiExample(
            "with its pools",
            {"name": "prod", "cluster_prefix": "2001:db8:10::/48"},
            request_only=True,
        )
    ],
)  # fmt: skip
CLUSTER = _says("A cluster", {200: _CLUSTER}, fails="404")
CLUSTER_PATCH = _says(
    "Change what instances are told",
    {200: _CLUSTER},
    fails="404 409 411 413 415",
    **_body(
        _object(
            description=_TEXT, instance_gateway=_ADDRESS, instance_mtu=_WHOLE,
            instance_dns=_list(_ADDRESS),
        )
        | _SOMETHING
    ),
)  # fmt: skip
CLUSTER_DELETE = _says(
    "Forget a cluster; its history stays",
    {204: None},
    fails="404 409",
    parameters=_query(
        force="true: with all that it holds, with the right to force releases", reason="why"
    ),
)
POOLS = _says(
    "Pools",
    {200: _page(_POOL)},
    parameters=_query(
        cluster="name or id", category="pod, node, instance, ipv4, vm", name="by name",
        within="pools with a CIDR that overlaps this one", **_PAGED,
    ),
)  # fmt: skip
POOL_CREATE = _writes(
    "Make a pool",
    {201: _POOL},
    _POOL_IN,
    examples=[
        OpenApiExample(
            "a Cilium pool with a reserved range",
            {
                "cluster": "prod", "name": "green-pool", "category": "pod", "cooldown_seconds": 0,
                "ipv4": {
                    "mask_size": 24,
                    "cidrs": [
                        {"cidr": "10.20.0.0/16", "reserved_ranges": ["10.20.0.0-10.20.0.99"]}
                    ],
                },
            },
            request_only=True,
        )
    ],
)  # fmt: skip
POOL = _says("A pool", {200: _POOL}, fails="404")
POOL_PATCH = _says(
    "Change a pool; a family given is the whole family",
    {200: _POOL},
    fails="404 409 411 412 413 415",
    parameters=[_MATCH],
    **_body(_object(**_POOL_CHANGE) | _SOMETHING),
)
POOL_DELETE = _says("Remove an unused pool", {204: None}, fails="404 409 412", parameters=[_MATCH])
POOL_IMPORT = _says(
    "Pools from CiliumPodIPPools or Helm values, all or nothing",
    {200: _REPORTS, 201: _REPORTS},
    fails=_WRITES,
    parameters=[_KEY, *_query(cluster="whose pools", dry_run="only say what would happen")],
    request={
        "application/json": _object("manifest", cluster=_TEXT, manifest=_TEXT),
        "application/yaml": _TEXT,
    },
)
CIDRS = _says(
    "The CIDRs of a pool, with ids",
    {200: _object("results", results=_list(_CIDR_OUT))},
    fails="404",
)
CIDR_CREATE = _writes(
    "A further CIDR",
    {201: _CIDR_OUT},
    _object("cidr", cidr=_CIDR, reserved_ranges=_list(_RANGE)),
    fails="404",
)
CIDR_DELETE = _says("Take an unused CIDR out", {204: None}, fails="404 409")
RANGE_CREATE = _writes(
    "Reserve a range",
    {201: _object(id=_WHOLE, range=_RANGE, reason=_TEXT)},
    _object("range", range=_RANGE, reason=_TEXT),
    fails="404",
)
RANGE_DELETE = _says("Give a reserved range back", {204: None}, fails="404 409")
ALLOCATE = _writes(
    "Allocate blocks, all or nothing",
    {200: _object(blocks=_list(_BLOCK)), 201: _object(blocks=_list(_BLOCK)), 202: _REQUEST},
    _object(
        holder=_HOLDER_IN, holders=_list(_HOLDER_IN), org=_TEXT, env=_TEXT,
        family={"type": "integer", "enum": [4, 6]},
        count={"type": "integer", "minimum": 1, "maximum": 10000}, cidr=_CIDR, wait=_FLAG,
    ),
    fails="404",
    examples=[
        OpenApiExample(
            "the next address",
            {"holder": {"kind": "instance", "id": "i-1"}, "org": "o", "env": "e"},
            request_only=True,
        )
    ],
)  # fmt: skip
BLOCKS = _says(
    "Blocks that are held or cooling",
    {200: _page(_BLOCK)},
    parameters=_query(
        cluster="name or id", pool="id or name", holder_kind="", holder_id="", org="", env="",
        state="held, cooling", category="", family="4, 6", within="inside this CIDR", **_PAGED,
    ),
)  # fmt: skip
BLOCK = _says("A block", {200: _BLOCK}, fails="404")
RELEASE = _writes(
    "Give a block back; compare-and-set on the holder",
    {200: _BLOCK},
    _object(holder=_HOLDER_IN, org=_TEXT, force=_FLAG, reason=_TEXT),
    fails="404",
)
END_COOLDOWN = _writes(
    "End a cooldown early", {200: _BLOCK}, _object("reason", reason=_TEXT), fails="404"
)
REQUESTS = _says(
    "Requests that wait or waited for space",
    {200: _page(_REQUEST)},
    parameters=_query(
        cluster="", pool="", state="pending, fulfilled, cancelled", holder_kind="", holder_id="",
        org="", env="", **_PAGED,
    ),
)  # fmt: skip
REQUEST = _says("A request", {200: _REQUEST}, fails="404")
REQUEST_CANCEL = _says("Cancel a pending request", {200: _REQUEST}, fails="404")
ENVIRONMENTS = _says(
    "Environments, and which lack addresses",
    {200: _page(_ENVIRONMENT)},
    parameters=_query(cluster="", org="", env="", status="ok, degraded", **_PAGED),
)
EVENTS = _says(
    "What happened, newest first",
    {200: _page(_EVENT)},
    parameters=_query(
        cluster="", pool="", type="such as instance.allocated", holder_kind="", holder_id="",
        org="", env="", actor="", request_id="", block="a CIDR", since="RFC 3339",
        until="RFC 3339", **_PAGED,
    ),
)  # fmt: skip
ADDRESS = _says(
    "Who has an address, or had it",
    {
        200: _object(
            "address at matches history",
            address=_ADDRESS, at=_TIME, matches=_list(_TENURE), history=_list(_TENURE),
        )
    },
    parameters=_query(cluster="name or id", at="RFC 3339"),
)  # fmt: skip
INSTANCE_NETWORK = _says(
    "What an instance is told of its network",
    {200: _object(overlay_ipv6=_ADDRESS, gateway_ipv6=_ADDRESS, mtu=_WHOLE, dns=_list(_ADDRESS))},
    fails="404",
    parameters=_query(cluster="name or id"),
)
