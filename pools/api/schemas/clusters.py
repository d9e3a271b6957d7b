"""What OpenAPI says of the connections to clusters, and of what is seen through them."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

from pools.platform.rest.openapi import (
    CIDR,
    FLAG,
    PAGED,
    SOMETHING,
    TEXT,
    TIME,
    WHOLE,
    Schema,
    body,
    listed,
    nullable,
    page,
    query,
    says,
    shape,
)

STATES = (
    "never-synced", "healthy", "stale", "unauthorized", "unreachable", "forbidden", "crd-missing",
    "incomplete", "identity-changed", "failing", "paused",
)  # fmt: skip
_MODE: Schema = {"type": "string", "enum": ["observed", "managed"]}
_MANAGED_RESOURCES = listed(
    {
        "type": "string",
        "enum": ["pools", "pod-cidrs", "claims", "ippool-status", "conversion"],
    }
)
_ERROR = nullable(shape("code message", code=TEXT, message=TEXT))
_ANY: Schema = {"nullable": True, "description": "any JSON value; null where the field is absent"}
_MAP: Schema = {"type": "object", "additionalProperties": True}
_CONNECTION = shape(
    "cluster server mode managed_resources state message",
    cluster=TEXT, cluster_id=WHOLE, server=TEXT, in_cluster=FLAG, mode=_MODE, managed_resources=_MANAGED_RESOURCES,
    paused=FLAG, state={"type": "string", "enum": list(STATES)}, message=TEXT, identity=TEXT,
    version=TEXT, expires_at=TIME, succeeded_at=TIME, tried_at=TIME, due_at=TIME, failures=WHOLE,
    failed_objects=WHOLE, served=nullable({"type": "object", "additionalProperties": TEXT}), shows=TEXT,
    error=_ERROR, objects=WHOLE, problems=WHOLE, findings=WHOLE, drift=WHOLE,
)  # fmt: skip
_MADE = shape("cluster server mode", **_CONNECTION["properties"], warnings=listed(TEXT))
_SOURCE = {
    "kubeconfig": {"type": "string", "writeOnly": True, "description": "the file's text; never given back"},
    "context": TEXT,
    "in_cluster": FLAG,
    "mode": _MODE,
    "managed_resources": _MANAGED_RESOURCES,
}  # fmt: skip
_EXAMINATION = shape(
    "succeeded server code message kinds rights endings",
    succeeded=FLAG, server=TEXT, code=TEXT, message=TEXT, version=TEXT, identity=TEXT,
    doubts=listed(TEXT),
    kinds=listed(shape("kind served", kind=TEXT, served=listed(TEXT), shape=TEXT, note=TEXT)),
    rights=listed(shape("right granted", right=TEXT, needed_for=TEXT, granted=FLAG)),
    endings=listed(shape("what at days", what=TEXT, at=TIME, days=WHOLE)),
)  # fmt: skip
_RUN = shape(
    "id trigger started_at succeeded kinds",
    id=WHOLE, trigger={"type": "string", "enum": ["schedule", "watch", "change", "dry-run"]},
    started_at=TIME, ended_at=TIME, seconds={"type": "number", "nullable": True}, succeeded=FLAG,
    kinds=_MAP, error=_ERROR,
)  # fmt: skip
_DRIFT = shape(
    "id kind name path desired observed",
    id=WHOLE, kind=TEXT, namespace=TEXT, name=TEXT, path=TEXT, desired=_ANY, observed=_ANY,
    managers=listed(TEXT), since=TIME, conflict=TEXT, conflict_code=TEXT, ignored_by=nullable(TEXT), ignored_at=TIME,
    ignored_reason=TEXT,
)  # fmt: skip
_COUNTS = shape(ipv4=WHOLE, ipv6=WHOLE)
_PLACE = shape(pool=TEXT, cidr=CIDR)
_NODE = shape(
    "name uid pools",
    name=TEXT, uid=TEXT,
    pools=listed(
        shape(
            "pool needed usable missing cidrs",
            pool=TEXT, needed=_COUNTS, usable=_COUNTS, missing=_COUNTS, cidrs=listed(CIDR),
        )
    ),
    orphans=listed(_PLACE), overlaps=listed(shape(pool=TEXT, cidr=CIDR, holder=TEXT)),
    waiting=listed(CIDR), error=TEXT, problem=TEXT,
)  # fmt: skip
NODE_FIELDS = tuple(_NODE["properties"])

CONNECTION = says("How a cluster is connected and stands", {200: _CONNECTION}, fails="404")
CONNECTION_PUT = says(
    "Connect a cluster, or replace its credentials",
    {200: _MADE, 201: _MADE},
    fails="404 409 411 413 415 502",
    **body(shape(**_SOURCE, offline=FLAG) | SOMETHING),
    examples=[
        OpenApiExample(
            "observed, not asked now",
            {"kubeconfig": "apiVersion: v1\nkind: Config\n…", "context": "prod", "offline": True},
            request_only=True,
        )
    ],
)
CONNECTION_PATCH = says(
    "Change what is written to a cluster, pause or resume",
    {200: _CONNECTION},
    fails="404 411 413 415",
    **body(shape(mode=_MODE, managed_resources=_MANAGED_RESOURCES, paused=FLAG) | SOMETHING),
)
CONNECTION_DELETE = says(
    "Forget a cluster's credentials; what it holds stays", {204: None}, fails="404"
)
CONNECTION_TEST = says(
    "Test a connection; nothing is changed",
    {200: _EXAMINATION},
    fails="404 411 413 415",
    **body(shape(**_SOURCE)),
)
RECONCILE = says(
    "Have a cluster reconciled at once",
    {202: shape("due_at runs", due_at=TIME, runs=listed(_RUN))},
    fails="404 409",
    request=None,
)
DRIFT_DECISION = says(
    "Settle a difference: apply, adopt, ignore, unignore",
    {200: shape("differences", pool_id=nullable(WHOLE), differences=listed(_DRIFT))},
    fails="404 409 411 413 415",
    **body(shape(reason=TEXT)),
)
_OWNERSHIP = shape(
    "kind name resource_version token fields",
    kind=TEXT, namespace=TEXT, name=TEXT, resource_version=TEXT, token=TEXT,
    fields=listed(
        shape(
            "path desired observed managers",
            path=TEXT, desired=_ANY, observed=_ANY, managers=listed(TEXT),
        )
    ),
)  # fmt: skip
OWNERSHIP = says(
    "The fields of the object that other managers own and the register wants otherwise, as they are now",
    {200: _OWNERSHIP},
    fails="404 409 502",
)
OWNERSHIP_TAKE = says(
    "Take exactly the fields of a preview over from their managers; object_changed when it is not true any more",
    {200: _OWNERSHIP},
    fails="404 409 411 413 415 502",
    **body(shape("token reason", token=TEXT, reason=TEXT)),
)
NODES = says(
    "What the nodes of a cluster ask for and hold",
    {200: page(_NODE)},
    fails="404",
    parameters=query(name="one node", **PAGED),
)
