"""What OpenAPI says of each endpoint: shapes, parameters, examples (the examples run as tests)."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

from pools.platform.rest.openapi import (
    CIDR,
    FLAG,
    IF_MATCH,
    IP,
    NUMBER,
    PAGED,
    RANGE,
    SOMETHING,
    TEXT,
    TIME,
    WHOLE,
    body,
    listed,
    nullable,
    page,
    query,
    says,
    shape,
    writes,
)

Schema = dict[str, Any]

_FAMILY = nullable(
    shape(
        "mask_size cidrs",
        mask_size=WHOLE,
        cidrs=listed(shape("cidr", cidr=CIDR, reserved_ranges=listed(RANGE))),
    )
)
_USAGE = shape(
    "capacity held cooling reserved free ratio approximate",
    capacity=NUMBER, held=NUMBER, cooling=NUMBER, reserved=NUMBER, free=NUMBER,
    ratio={"type": "number"}, approximate=FLAG,
)  # fmt: skip
_TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
_CATEGORY: Schema = {"type": "string", "enum": ["pod", "node", "instance", "ipv4", "vm"]}
_COOLDOWN: Schema = {"type": "integer", "minimum": 0, "maximum": 315360000}
_POOL_CHANGE = {
    "cooldown_seconds": _COOLDOWN, "description": TEXT, "ipv4": _FAMILY, "ipv6": _FAMILY,
    "annotations": _TEXTS, "labels": _TEXTS,
}  # fmt: skip
_POOL_IN = shape(
    "cluster name category",
    cluster=TEXT, name=TEXT, category=_CATEGORY, allow_first_ip=FLAG, allow_last_ip=FLAG,
    **_POOL_CHANGE,
)  # fmt: skip
_POOL = shape(
    "id cluster name category cooldown_seconds ipv4 ipv6 version utilization",
    **dict(_POOL_IN["properties"]),
    id=WHOLE,
    version=WHOLE,
    created_at=TIME,
    waiting=listed(
        shape(
            "path managers since drift_id",
            path=TEXT,
            managers=listed(TEXT),
            since=TIME,
            drift_id=WHOLE,
        )
    ),
    utilization=shape(ipv4=_USAGE, ipv6=_USAGE),
)
_REQUEST = shape(
    "id state pool cluster holder",
    id=WHOLE, state={"type": "string", "enum": ["pending", "fulfilled", "cancelled"]}, pool=TEXT,
    pool_id=WHOLE, cluster=TEXT, holder=_HOLDER_IN, org=TEXT, env=TEXT, attempts=WHOLE,
    message=TEXT, block_ids=listed(WHOLE), created_at=TIME, next_try_at=TIME, ended_at=TIME,
)  # fmt: skip
_HOLDER_OUT = shape(kind=TEXT, id=TEXT, uid=TEXT)
TENURE = shape(
    "cluster space pool block state holder org env since until",
    cluster=TEXT, space=TEXT, pool=TEXT, block=CIDR, state=TEXT, holder=_HOLDER_OUT,
    org=TEXT, env=TEXT, since=TIME, until=TIME,
)  # fmt: skip
_ENVIRONMENT = shape(
    "cluster org env status",
    id=WHOLE, cluster=TEXT, org=TEXT, env=TEXT,
    status={"type": "string", "enum": ["ok", "degraded"]}, degraded=FLAG, reason=TEXT,
    message=TEXT, since=TIME,
)  # fmt: skip
_CIDR_OUT = shape(
    "id cidr pending reserved_ranges",
    id=WHOLE,
    cidr=CIDR,
    pending={"type": "string", "nullable": True, "enum": ["addition", "removal", None]},
    reserved_ranges=listed(shape(id=WHOLE, range=RANGE, reason=TEXT)),
)
BLOCK_SHAPE = _BLOCK  # for the neighbours of this module
# What `fields=` of a list may name.
(BLOCK_FIELDS, ENVIRONMENT_FIELDS, POOL_FIELDS) = (
    tuple(shape["properties"]) for shape in (_BLOCK, _ENVIRONMENT, _POOL)
)
POOLS = says(
    "Pools",
    {200: page(_POOL)},
    parameters=query(
        cluster="name or id", category="pod, node, instance, ipv4, vm", name="by name",
        within="pools with a CIDR that overlaps this one", **PAGED,
    ),
)  # fmt: skip
POOL_CREATE = writes(
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
POOL = says("A pool", {200: _POOL}, fails="404")
POOL_PATCH = says(
    "Change a pool; a family given is the whole family",
    {200: _POOL},
    fails="404 409 411 412 413 415",
    parameters=[IF_MATCH],
    **body(shape(**_POOL_CHANGE) | SOMETHING),
)
POOL_DELETE = says("Remove an unused pool", {204: None}, fails="404 409 412", parameters=[IF_MATCH])
CIDRS = says(
    "The CIDRs of a pool, with ids",
    {200: shape("results", results=listed(_CIDR_OUT))},
    fails="404",
)
CIDR_CREATE = writes(
    "A further CIDR",
    {201: _CIDR_OUT},
    shape("cidr", cidr=CIDR, reserved_ranges=listed(RANGE)),
    fails="404",
)
CIDR_DELETE = says(
    "Take an unused CIDR out; 202 while the cluster's object still has it",
    {202: _CIDR_OUT, 204: None},
    fails="404 409",
)
RANGE_CREATE = writes(
    "Reserve a range",
    {201: shape(id=WHOLE, range=RANGE, reason=TEXT)},
    shape("range", range=RANGE, reason=TEXT),
    fails="404",
)
RANGE_DELETE = says("Give a reserved range back", {204: None}, fails="404 409")
ENVIRONMENTS = says(
    "Environments, and which lack addresses",
    {200: page(_ENVIRONMENT)},
    parameters=query(cluster="", org="", env="", status="ok, degraded", **PAGED),
)
ADDRESS = says(
    "Who has an address, or had it",
    {
        200: shape(
            "address at matches history",
            address=IP, at=TIME, matches=listed(TENURE), history=listed(TENURE),
        )
    },
    parameters=query(cluster="name or id", at="RFC 3339"),
)  # fmt: skip
INSTANCE_NETWORK = says(
    "What an instance is told of its network",
    {200: shape(overlay_ipv6=IP, gateway_ipv6=IP, mtu=WHOLE, dns=listed(IP))},
    fails="404",
    parameters=query(cluster="name or id"),
)
