"""What OpenAPI says of migrations."""

from __future__ import annotations

from pools.cidr_migrations.progress import MigrationStatus, MigrationStep
from pools.core.cilium.preflight import RuleResult
from pools.platform.rest.openapi import (  # fmt: skip
    CIDR,
    FLAG,
    RANGE,
    TEXT,
    TIME,
    WHOLE,
    listed,
    nullable,
    query,
    says,
    shape,
    writes,
)

_FINDING = shape(
    "rule verdict found advice",
    rule=TEXT,
    verdict={"type": "string", "enum": [verdict.value for verdict in RuleResult]},
    found=TEXT,
    advice=TEXT,
)
_DRY_RUN = query(dry_run="true: only say what would happen")

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
