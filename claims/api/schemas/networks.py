"""What OpenAPI says of networks."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample, OpenApiParameter

from pools.platform.rest.openapi import (
    CIDR,
    FLAG,
    IP,
    PAGED,
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


def _words(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


_REASON = shape("code message", code=TEXT, message=TEXT, remedy=TEXT)
_SELECTOR: Schema = {"type": "object", "nullable": True, "additionalProperties": True}
_NAMESPACES: Schema = listed(TEXT) | {"description": "short for a selector of these"}
_MADE = {
    "cluster": TEXT, "name": TEXT | {"description": "the logical network name"},
    "kind": _words("cudn", "udn"), "namespace": TEXT, "topology": _words("layer2", "layer3"),
    "role": _words("primary", "secondary"), "ipam_mode": _words("Enabled", "Disabled"),
    "lifecycle": _words("Persistent", ""), "mtu": nullable(WHOLE), "subnets": listed(CIDR),
    "default_gateways": listed(IP), "reserved_subnets": listed(CIDR) | {"maxItems": 25},
    "infrastructure_subnets": listed(CIDR) | {"maxItems": 4}, "join_subnets": listed(CIDR),
    "namespace_selector": _SELECTOR, "applied": FLAG, "description": TEXT,
}  # fmt: skip
_NADS = listed(
    shape("namespace name", namespace=TEXT, name=TEXT, role=TEXT, allow_persistent_ips=FLAG)
)
_IN = shape("cluster name", **_MADE, namespaces=_NAMESPACES, nads=_NADS)
NETWORK = shape(
    "id cluster name kind namespace topology role lifecycle subnets default_gateways"
    " reserved_subnets infrastructure_subnets nads static_vms",
    **{
        **_MADE,
        "kind": _words("cudn", "udn", "nad", ""),
        "topology": _words("layer2", "layer3", "localnet", ""),
        "role": _words("primary", "secondary", ""),
        "ipam_mode": _words("Enabled", "Disabled", ""),
        "default_gateways": listed(IP)
        | {"description": "those that count: as configured, else the first address of each subnet"},
    },
    id=WHOLE,
    object_name=TEXT,
    gateways_configured=FLAG,
    exclude_subnets=listed(CIDR),
    nads=_NADS,
    static_vms=shape("ok reasons", ok=FLAG, reasons=listed(_REASON), notes=listed(_REASON)),
    pool=nullable(WHOLE),
    known=FLAG,
    follows_cluster=FLAG,
    gone=FLAG,
    gone_at=TIME,
    conditions=listed({"type": "object", "additionalProperties": True}),
    route_advertisements=nullable(
        listed(shape("name accepted", name=TEXT, accepted=nullable(FLAG)))
    )
    | {"description": "those that select the network; null: not known"},
    created_at=TIME,
)
FIELDS = tuple(NETWORK["properties"])

NETWORKS = says(
    "Logical networks",
    {200: page(NETWORK)},
    parameters=query(
        cluster="name or id", name="the logical name", kind="cudn, udn, nad",
        namespace="that uses it through a NAD, or that it is made in",
        static_vms="true: can hold static VMs", q="part of a name, or an address or CIDR of a subnet",
        known="true (default), false: only mentioned by an IPPool or a claim, all", **PAGED,
    ),
)  # fmt: skip
NETWORK_CREATE = writes(
    "Make a network: to be applied, or as a note of an observed cluster",
    {201: NETWORK},
    _IN,
    examples=[
        OpenApiExample(
            "for imported VMs",
            {
                "cluster": "prod", "name": "cluster_udn_blue", "kind": "cudn",
                "topology": "layer2", "role": "primary", "lifecycle": "Persistent",
                "subnets": ["10.100.0.0/16"], "default_gateways": ["10.100.0.254"],
                "reserved_subnets": ["10.100.1.0/24"], "namespaces": ["blue"],
            },
            request_only=True,
        )
    ],
)  # fmt: skip
NETWORK_ONE = says("A logical network", {200: NETWORK}, fails="404")
NETWORK_PATCH = says(
    "Change what can be changed of a network",
    {200: NETWORK},
    fails="404 409 411 413 415",
    **body(
        shape(
            description=TEXT,
            applied=FLAG,
            namespace_selector=_SELECTOR,
            namespaces=_NAMESPACES,
            nads=_NADS,
        )
        | SOMETHING
    ),
)
NETWORK_DELETE = says("Forget a network that nothing uses", {204: None}, fails="404 409")
NETWORK_MANIFEST = says(
    "The manifest of a network",
    {200: {"type": "object", "additionalProperties": True}},
    fails="404",
    parameters=[
        OpenApiParameter("format", str, description="json (default) or yaml", enum=["json", "yaml"])
    ],
)
