"""What OpenAPI says of IPAMClaims and of the manifests of VMs."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import OpenApiExample

from claims.ipamclaims.states import STATES
from pools.platform.rest.openapi import (
    FLAG,
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

_MAC = {"type": "string", "example": "02:03:04:05:06:07"}
_IPS: dict[str, Any] = {
    "type": "array", "maxItems": 2, "items": {"type": "string", "example": "10.0.0.5/24"}
}  # fmt: skip
_MANIFEST: dict[str, Any] = {"type": "object", "additionalProperties": True}
_WHERE = shape("type", type=TEXT, id=WHOLE, name=TEXT, namespace=TEXT, vm=TEXT, mac=TEXT)
_DUPLICATE = shape(
    "kind value with",
    **{"kind": {"type": "string", "enum": ["mac", "ip"]}, "value": TEXT, "with": listed(_WHERE)},
    note=FLAG,
)
_CONDITION = shape(
    "type status", type=TEXT, status=TEXT, reason=TEXT, message=TEXT, lastTransitionTime=TEXT
)
_IN = shape(
    "cluster namespace network",
    cluster=TEXT, namespace=TEXT, network=TEXT | {"description": "logical network name"},
    vm=TEXT, name=TEXT, interface=TEXT, mac=nullable(_MAC), ips_requested=_IPS, note=TEXT,
)  # fmt: skip
_CLAIM = shape(
    "id cluster namespace name network interface mac ips_requested status",
    **{**_IN["properties"], "mac": nullable(_MAC)},
    id=WHOLE,
    vm_uid=TEXT,
    status=shape(
        "ips owner_pod conditions", ips=listed(TEXT), owner_pod=TEXT, conditions=listed(_CONDITION)
    ),
    pods=listed(TEXT) | {"description": "what runs its VM now; status.owner_pod may be older"},
    state={"type": "string", "enum": list(STATES)},
    next_step=TEXT,
    finalizers=listed(TEXT),
    deleted_at=TIME,
    follows_cluster=FLAG,
    in_cluster=FLAG,
    given_back_at=TIME,
    duplicates=listed(_DUPLICATE),
    created_at=TIME,
)
FIELDS = tuple(_CLAIM["properties"])

CLAIMS = says(
    "IPAMClaims of the namespaces that are seen",
    {200: page(_CLAIM)},
    parameters=query(
        cluster="name or id", namespace="", network="logical network name", vm="", name="",
        ip="an address or a CIDR", mac="", state=", ".join(STATES),
        q="part of the name, the VM or an address", **PAGED,
    ),
)  # fmt: skip
CLAIM_CREATE = writes(
    "Make an IPAMClaim; a managed cluster is given it",
    {201: _CLAIM},
    _IN,
    examples=[
        OpenApiExample(
            "the decentralized form of the enhancement proposal",
            {
                "cluster": "prod", "namespace": "blue", "network": "cluster_udn_prod", "vm": "vm1",
                "mac": "02:03:04:05:06:07", "ips_requested": ["10.0.0.5/24"],
            },
            request_only=True,
        )
    ],
)  # fmt: skip
CLAIM = says("An IPAMClaim", {200: _CLAIM}, fails="404")
CLAIM_PATCH = says(
    "Change what a claim without addresses asks for",
    {200: _CLAIM},
    fails="404 409 411 413 415",
    **body(shape(mac=nullable(_MAC), ips_requested=_IPS, note=TEXT) | SOMETHING),
)
CLAIM_DELETE = says("Take back a claim that no cluster has", {204: None}, fails="404 409")
CLAIM_MANIFEST = says(
    "An IPAMClaim as the object that it is or would be",
    {200: _MANIFEST},
    fails="404",
    parameters=query(format="json (default) or yaml"),
)
CLAIM_RELEASE = writes(
    "Give back the addresses of a leaked claim, with a reason",
    {200: _CLAIM},
    shape("reason", reason=TEXT),
    fails="404",
)
VM_MANIFEST = says(
    "The VirtualMachine with the annotation that gets it its addresses",
    {200: _MANIFEST},
    fails="404 409 411 413 415",
    parameters=query(format="json (default) or yaml"),
    **body(shape("vm namespace", vm=TEXT, namespace=TEXT, mac=_MAC)),
)
