"""What OpenAPI says of the guides: migrations, overlaps, preflight, the pool of a pod, manifests."""

from __future__ import annotations

from drf_spectacular.utils import OpenApiExample

from pools.cidr_migrations.progress import MigrationStatus, MigrationStep
from pools.cilium import exports
from pools.core.cilium.preflight import RuleResult
from pools.platform.rest.openapi import (  # fmt: skip
    CIDR,
    FLAG,
    RANGE,
    TEXT,
    TIME,
    WHOLE,
    Schema,
    body,
    listed,
    nullable,
    query,
    says,
    shape,
    writes,
)
from pools.register import overlaps

_TEXTS: Schema = {"type": "object", "additionalProperties": TEXT}
_FAMILY: Schema = {"type": "integer", "enum": [4, 6]}
_MARKED = shape("name", name=TEXT, labels=_TEXTS, annotations=_TEXTS)
_NUMBER: Schema = {"type": "integer", "minimum": 0, "maximum": 2147483647}
_NUMBERS: Schema = {
    "type": "object",
    "additionalProperties": {"oneOf": [_NUMBER, shape(ipv4=_NUMBER, ipv6=_NUMBER)]},
}
_FINDING = shape(
    "rule verdict found advice",
    rule=TEXT,
    verdict={"type": "string", "enum": [verdict.value for verdict in RuleResult]},
    found=TEXT,
    advice=TEXT,
)
_DRY_RUN = query(dry_run="true: only say what would happen")

POOL_FOR_POD = says(
    "Which pool a pod gets its addresses from, and why",
    {
        200: shape(
            "cluster default_pool choices",
            cluster=TEXT, default_pool=TEXT, default_pool_assumed=TEXT, pod_seen=FLAG,
            namespace_seen=FLAG, notes=listed(TEXT), when=TEXT,
            choices=listed(
                shape(
                    "family pool reasons problem",
                    family=_FAMILY, pool=TEXT, pool_id=nullable(WHOLE), free=nullable(TEXT),
                    reasons=listed(TEXT), problem=TEXT, unknown=listed(TEXT),
                )
            ),
        )
    },
    fails="404 411 413 415",
    **body(shape("pod namespace", pod=_MARKED, namespace=_MARKED)),
    examples=[
        OpenApiExample(
            "a label of the pod",
            {
                "pod": {"name": "web-0", "labels": {"app": "web"}},
                "namespace": {
                    "name": "shop",
                    "annotations": {"ipam.cilium.io/ip-pool": "green-pool"},
                },
            },
            request_only=True,
        )
    ],
)  # fmt: skip
NODE_DEMAND = says(
    "What a node will request, and which blocks it would get",
    {
        200: shape(
            "node known pre_allocation requests errors",
            node=TEXT, known=FLAG, pre_allocation={"type": "object", "additionalProperties": WHOLE},
            pre_allocation_assumed=TEXT, errors=listed(TEXT),
            requests=listed(
                shape(
                    "pool family needed held missing blocks",
                    pool=TEXT, family=_FAMILY, in_use=WHOLE, pending=WHOLE, pre_allocated=WHOLE,
                    needed=WHOLE, held=WHOLE, missing=WHOLE, blocks=listed(CIDR), problem=TEXT,
                )
            ),
        )
    },
    fails="404 411 413 415",
    **body(
        shape(node=TEXT, in_use=_NUMBERS, pending=_NUMBERS, pre_allocation=TEXT)
        | {"minProperties": 1}
    ),
    examples=[
        OpenApiExample(
            "twelve pods, and one that waits",
            {
                "in_use": {"default": 12},
                "pending": {"default": {"ipv4": 1}},
                "pre_allocation": "default=8,other=4",
            },
            request_only=True,
        )
    ],
)  # fmt: skip
PREFLIGHT = says(
    "Whether a cluster is fit for multi pool",
    {
        200: shape(
            "cluster verdict findings",
            cluster=TEXT, verdict=TEXT, config_unknown=TEXT, release=TEXT, pools=WHOLE,
            nodes=WHOLE, findings=listed(_FINDING),
        )
    },
    fails="404",
    parameters=query(release="Cilium's, such as 1.18, where the cluster does not say it"),
)  # fmt: skip
_MEMBER = shape(
    "cidr cluster category",
    cidr=CIDR, cluster=TEXT, space=TEXT, category=TEXT, pool=TEXT, pool_id=nullable(WHOLE),
)  # fmt: skip
OVERLAPS = says(
    "Networks of several clusters or spaces that overlap",
    {
        200: shape(
            "count next results",
            count=WHOLE,
            next=nullable({"type": "string", "format": "uri"}),
            results=listed(
                shape(
                    "cidr kinds clusters members members_in_all",
                    cidr=CIDR,
                    kinds=listed(
                        {"type": "string", "enum": sorted(kind.value for kind in overlaps.OverlapKind)}
                    ),
                    clusters=WHOLE,
                    members=listed(_MEMBER),
                    members_in_all=WHOLE,
                )
            ),
        )
    },
    parameters=query(
        cluster="name or id", kind="clusters, vm-network, overlay", within="that touch this CIDR",
        limit="1 to 1000 (100)", cursor="from `next`",
    ),
)  # fmt: skip
_SHAPE = query(shape=", ".join(exports.SHAPES), cluster="in the shape that this cluster takes")


def _yaml(summary: str) -> Schema:
    schema = says(summary, {}, fails="404 502", parameters=_SHAPE)
    schema["responses"][200, "application/yaml"] = TEXT
    return schema


POOL_MANIFEST = _yaml("A pool as YAML")
CLUSTER_MANIFEST = _yaml("All pod pools of a cluster as YAML")

_FORECAST = {
    "fits": FLAG, "findings": listed(_FINDING), "in_use": WHOLE, "nodes": WHOLE,
    "free_after": nullable(TEXT),
}  # fmt: skip
_MIGRATION = shape(
    "id pool_id cidr range whole to state steps in_use total percent",
    id=WHOLE, pool_id=WHOLE, pool=TEXT, cluster=TEXT, cidr=CIDR, range=RANGE, whole=FLAG,
    to=nullable(CIDR), added=FLAG,
    state={"type": "string", "enum": [standing.value for standing in MigrationStatus]},
    steps=listed({"type": "string", "enum": [step.value for step in MigrationStep]}),
    author={"type": "string", "enum": ["register", "cluster"]}, unwritten=FLAG, orphaned=FLAG,
    waiting=listed(
        shape("path managers since drift_id", path=TEXT, managers=listed(TEXT), since=TIME, drift_id=WHOLE)
    ),
    in_use=WHOLE, held=WHOLE, cooling=WHOLE, total=WHOLE, percent=WHOLE,
    holders=listed(
        shape(
            "kind id state blocks first",
            kind=TEXT, id=TEXT, state=TEXT, blocks=WHOLE, first=CIDR, until=TIME,
        )
    ),
    reason=TEXT, started_by=TEXT, started_at=TIME, ended_at=TIME,
)  # fmt: skip
MIGRATIONS = says(
    "Migrations of the CIDRs of a pool, newest first",
    {200: shape("results", results=listed(_MIGRATION))},
    fails="404",
)
MIGRATION_BEGIN = writes(
    "Begin to migrate a CIDR, nothing is reserved yet",
    {
        200: shape("fits findings in_use", **_FORECAST),
        201: _MIGRATION,
    },
    shape("cidr", cidr=CIDR, range=RANGE, to=CIDR, reason=TEXT),
    fails="404",
    parameters=_DRY_RUN,
)
MIGRATION = says("A migration, with who still holds blocks", {200: _MIGRATION}, fails="404")
MIGRATION_STEP = writes(
    "Do a step of a migration; `reserve` and `widen` can be tried before",
    {
        200: {
            "oneOf": [
                _MIGRATION,
                shape(
                    "range reserves fits findings in_use",
                    range=RANGE,
                    reserves=listed(RANGE),
                    **_FORECAST,
                ),
            ]
        }
    },
    shape(
        "step", step={"type": "string", "enum": [step.value for step in MigrationStep]}, reason=TEXT
    ),
    fails="404",
    parameters=query(dry_run="true: only say what reserve or widen would do"),
)
