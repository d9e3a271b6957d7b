"""What OpenAPI says of IPPools and their entries."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

from pools.platform.rest.openapi import (
    FLAG,
    IDEMPOTENCY_KEY,
    IF_MATCH,
    PAGED,
    SOMETHING,
    TEXT,
    TIME,
    WHOLE,
    WRITES,
    body,
    listed,
    nullable,
    page,
    query,
    says,
    shape,
    writes,
)

MAC = {"type": "string", "example": "00:1a:4b:12:34:56"}
IPS = {
    "type": "array", "minItems": 1, "maxItems": 16, "items": {"type": "string", "example": "10.0.0.5/24"}
}  # fmt: skip
_PROBLEMS = listed(shape(mac=TEXT, code=TEXT, message=TEXT))
_CONDITION = shape(
    "type status reason message lastTransitionTime",
    type=TEXT, status={"type": "string", "enum": ["True", "False", "Unknown"]}, reason=TEXT,
    message=TEXT, lastTransitionTime=TEXT,
)  # fmt: skip
_COUNTS = nullable(shape(mac=WHOLE, ip=WHOLE))
_IPPOOL = shape(
    "id cluster name network_name conditions associated_nads",
    id=WHOLE, cluster=TEXT, name=TEXT, network=WHOLE, network_name=TEXT, note=TEXT, entries=WHOLE,
    conditions=listed(_CONDITION), associated_nads=listed(shape(namespace=TEXT, name=TEXT)),
    duplicates=_COUNTS, problems=_PROBLEMS, follows_cluster=FLAG, gone_at=TIME, created_at=TIME,
    version=nullable(WHOLE),
)  # fmt: skip
_ENTRY_IN = shape("mac ips", mac=MAC, ips=IPS, vm=TEXT, namespace=TEXT, note=TEXT)
_WHERE = shape("type", type=TEXT, id=WHOLE, name=TEXT, namespace=TEXT, vm=TEXT, mac=TEXT)
_DUPLICATE = shape(
    "kind value with",
    **{"kind": {"type": "string", "enum": ["mac", "ip"]}, "value": TEXT, "with": listed(_WHERE)},
    note=FLAG,
)
_ENTRY = shape(
    "id ippool mac ips vm namespace source note duplicates",
    id=WHOLE, ippool=WHOLE, mac=MAC, ips=IPS, vm=TEXT, namespace=TEXT, source=TEXT, note=TEXT,
    created_at=TIME, duplicates=listed(_DUPLICATE), warnings=listed(shape(code=TEXT, message=TEXT)),
)  # fmt: skip
IPPOOL_FIELDS = tuple(_IPPOOL["properties"])
ENTRY_FIELDS = tuple(_ENTRY["properties"])

IPPOOLS = says(
    "IPPools of the networks that are seen",
    {200: page(_IPPOOL)},
    parameters=query(cluster="name or id", name="", network_name="logical network name", **PAGED),
)
IPPOOL_CREATE = writes(
    "Make an IPPool; a network has one",
    {201: _IPPOOL},
    shape("cluster name network_name", cluster=TEXT, name=TEXT, network_name=TEXT, note=TEXT),
    examples=[
        OpenApiExample(
            "of a network",
            {"cluster": "prod", "name": "prod-network", "network_name": "cluster_udn_prod"},
            request_only=True,
        )
    ],
)
IPPOOL = says("An IPPool", {200: _IPPOOL}, fails="404")
IPPOOL_PATCH = says(
    "Rename an IPPool, or note something about it",
    {200: _IPPOOL},
    fails="404 409 411 412 413 415",
    parameters=[IF_MATCH],
    **body(shape(name=TEXT, note=TEXT) | SOMETHING),
)
IPPOOL_DELETE = says(
    "Delete an IPPool with its entries", {204: None}, fails="404 409 412", parameters=[IF_MATCH]
)
IPPOOL_MANIFEST = says(
    "An IPPool as a Kubernetes object",
    {200: {"type": "object"}},
    fails="404",
    parameters=query(format="json (default) or yaml"),
)
ENTRIES = says(
    "The entries of an IPPool, with their duplicates",
    {200: page(_ENTRY)},
    fails="404",
    parameters=query(
        duplicate="mac or ip: only those with duplicates", mac="", ip="an address or a CIDR", vm="",
        namespace="", source="", q="a part of MAC, VM, namespace or note", **PAGED,
    ),
)  # fmt: skip
ENTRIES_ADD = writes(
    "Add an entry, or a list of them",
    {201: {"oneOf": [_ENTRY, listed(_ENTRY)]}},
    {"oneOf": [_ENTRY_IN, listed(_ENTRY_IN) | {"minItems": 1, "maxItems": 10000}]},
    fails="404",
    examples=[
        OpenApiExample(
            "one VM",
            {"mac": "00:1a:4b:12:34:56", "ips": ["10.0.0.5/24"], "vm": "web", "namespace": "shop"},
            request_only=True,
        )
    ],
)
_MAP = {"type": "object", "additionalProperties": IPS}
ENTRIES_REPLACE = says(
    "Make these all entries: a list, or the map of an IPPool, also inside `entries` or a manifest",
    {
        200: shape(
            "created changed deleted unchanged duplicates",
            created=WHOLE, changed=WHOLE, deleted=WHOLE, unchanged=WHOLE, duplicates=_COUNTS,
            conditions=listed(_CONDITION), version=WHOLE,
        )
    },
    fails=f"404 412 {WRITES}",
    parameters=[IDEMPOTENCY_KEY, IF_MATCH],
    request={
        "application/json": {"oneOf": [listed(_ENTRY_IN), _MAP]},
        "application/yaml": TEXT,
    },
)  # fmt: skip
ENTRY = says("An entry", {200: _ENTRY}, fails="404")
ENTRY_PATCH = says(
    "Change an entry",
    {200: _ENTRY},
    fails="404 409 411 413 415",
    **body(shape(mac=MAC, ips=IPS, vm=TEXT, namespace=TEXT, note=TEXT) | SOMETHING),
)
ENTRY_DELETE = says("Delete an entry", {204: None}, fails="404 409")
ADDRESSES_FOR_MAC = says(
    "The addresses of a MAC address on a network",
    {
        200: shape(
            "mac ips source vm",
            mac=MAC, ips=IPS, source={"type": "string", "enum": ["ippool", "ipamclaim"]}, vm=TEXT,
            namespace=TEXT,
        )
    },
    fails="404",
    parameters=query(mac="a MAC address"),
)  # fmt: skip
