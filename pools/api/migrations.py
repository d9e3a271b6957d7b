"""pools/{}/migrations/: migrate the blocks of a CIDR to another one, step by step."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import pools
from pools.api.clusters.guides_serializers import PreflightFindingSerializer
from pools.api.schemas import guides as guide_schema
from pools.cidr_migrations import forecast, migrations
from pools.cidr_migrations import progress as cidr_migration_progress
from pools.cidr_migrations.progress import MigrationStep
from pools.cilium import drift
from pools.core import addresses, object_reader
from pools.core.block_fields import time
from pools.models import CIDRMigration, Pool
from pools.platform import events, idempotency
from pools.platform.rest import parsing, query, views

LISTED = 100  # newest migrations of a pool


class Migrations(views.View):
    needs = {"GET": ("pools.view_pool",), "POST": ("pools.change_pool",)}

    @extend_schema(**guide_schema.MIGRATIONS)
    def get(self, request: Request, pool_id: int) -> views.Answer:
        pool = pools.get_pool(pool_id)
        rows = CIDRMigration.objects.filter(pool=pool).select_related(
            "pool__cluster", "pool_cidr__pool__cluster"
        )
        return views.answer({"results": [shape(row, holder_limit=0) for row in rows[:LISTED]]})

    @extend_schema(**guide_schema.MIGRATION_BEGIN)
    def post(self, request: Request, pool_id: int) -> views.Answer:
        parameters = query.Query(request)
        dry_run = parameters.parse("dry_run", query.flag)
        parameters.done()
        body = parsing.fields(request, "cidr", "range", "to", "reason")
        plan, reason = _plan(body, pools.get_pool(pool_id)), _reason(body)
        author = views.author(request, reason)
        if dry_run:
            return views.answer(_forecast(plan, author))

        def work() -> idempotency.Stored:
            return idempotency.Stored(201, shape(migrations.start_migration(plan, author=author)))

        stored = views.run_once(request, work)
        return views.answer(stored.answer, status=stored.status)


class MigrationView(views.View):
    needs = {"GET": ("pools.view_pool",)}

    @extend_schema(**guide_schema.MIGRATION)
    def get(self, request: Request, pool_id: int, migration_id: int) -> views.Answer:
        return views.answer(shape(migrations.get_migration(migration_id, pool_id=pool_id)))


class MigrationSteps(views.View):
    needs = {"POST": ("pools.change_pool",)}

    @extend_schema(**guide_schema.MIGRATION_STEP)
    def post(self, request: Request, pool_id: int, migration_id: int) -> views.Answer:
        parameters = query.Query(request)
        dry_run = parameters.parse("dry_run", query.flag)
        parameters.done()
        body = parsing.fields(request, "step", "reason")
        step = body.parse("step", _step)
        author = views.author(request, _reason(body))
        migrations.get_migration(migration_id, pool_id=pool_id)
        if dry_run:
            plan = migrations.withholding_plan(migration_id, step or MigrationStep.ABORT)
            gaps = map(str, migrations.unreserved_gaps(plan.cidr, plan.span))
            return views.answer(
                {"range": str(plan.span), "reserves": [*gaps], **_forecast(plan, author)}
            )

        def work() -> idempotency.Stored:
            migration = migrations.take_step(
                migration_id, step or MigrationStep.ABORT, author=author
            )
            return idempotency.Stored(200, shape(migration))

        stored = views.run_once(request, work)
        return views.answer(stored.answer, status=stored.status)


def _step(value: object, field: str) -> MigrationStep:
    return MigrationStep(parsing.choice(value, field, tuple(step.value for step in MigrationStep)))


def _reason(body: object_reader.Fields) -> str:
    """Return the reason, the last field to parse. Raises InvalidInput with all problems."""
    reason = body.parse("reason", parsing.reason) if body.has("reason") else ""
    body.report.raise_any()
    return reason or ""


def _plan(body: object_reader.Fields, pool: Pool) -> migrations.MigrationPlan:
    cidr = body.parse("cidr", lambda value, field: addresses.parse_cidr(value, field=field))
    span = to = None
    if body.has("range"):
        span = body.parse("range", lambda value, field: addresses.parse_range(value, field=field))
    if body.has("to"):
        to = body.parse("to", lambda value, field: addresses.parse_cidr(value, field=field))
    body.report.raise_any()
    if cidr is None:
        raise AssertionError("unreachable: a missing cidr was reported")
    return migrations.plan_migration(pool, cidr, span=span, to=to)


def _forecast(plan: migrations.MigrationPlan, author: events.Author) -> dict[str, Any]:
    migration_forecast = forecast.forecast_migration(plan, author=author)
    return {
        "fits": migration_forecast.fits,
        "in_use": migration_forecast.in_use,
        "nodes": migration_forecast.nodes,
        "free_after": str(migration_forecast.after.free) if migration_forecast.after else None,
        "findings": PreflightFindingSerializer(migration_forecast.findings, many=True).data,
    }


def shape(
    migration: CIDRMigration, *, holder_limit: int = cidr_migration_progress.MOST_HOLDERS
) -> dict[str, Any]:
    """Return the JSON object of a migration, with the `holder_limit` holders with most blocks."""
    progress = cidr_migration_progress.migration_progress(migration, holder_limit=holder_limit)
    return {
        "id": migration.pk,
        "pool_id": migration.pool_id,
        "pool": migration.pool.name,
        "cluster": migration.pool.cluster.name,
        "cidr": str(migration.cidr),
        "range": str(cidr_migration_progress.span_of(migration)),
        "whole": cidr_migration_progress.is_whole(migration),
        "to": str(migration.to) if migration.to else None,
        "added": progress.added,
        "state": progress.status.value,
        "steps": [step.value for step in progress.steps],
        "by": "cluster" if progress.by_cluster else "register",
        "unwritten": progress.unwritten,
        "waiting": pools.WaitingFieldSerializer(
            drift.conflicts_of_pool(migration.pool), many=True
        ).data,
        "orphaned": progress.orphaned,
        "in_use": progress.in_use,
        "held": progress.held,
        "cooling": progress.cooling,
        "total": progress.total,
        "percent": progress.percent,
        "holders": [
            {
                "kind": holder.holder_kind,
                "id": holder.holder_id,
                "state": holder.state,
                "blocks": holder.blocks,
                "first": holder.first,
                "until": time(holder.until),
            }
            for holder in progress.holders
        ],
        "reason": migration.reason,
        "started_by": migration.started_by,
        "started_at": time(migration.started_at),
        "ended_at": time(migration.ended_at),
    }
