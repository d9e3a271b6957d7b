"""pools/{}/migrations/: the two-step migration of a CIDR, step by step."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.request import Request

from pools.api import pool_cidrs, pools
from pools.api.clusters import guides
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
        pool = pools.get(pool_id)
        rows = CIDRMigration.objects.filter(pool=pool).select_related(
            "pool__cluster", "pool_cidr__pool__cluster"
        )
        return views.answer({"results": [shape(row, told=0) for row in rows[:LISTED]]})

    @extend_schema(**guide_schema.MIGRATION_BEGIN)
    def post(self, request: Request, pool_id: int) -> views.Answer:
        parameters = query.Query(request)
        dry_run = parameters.parse("dry_run", query.flag)
        parameters.done()
        body = parsing.fields(request, "cidr", "range", "to", "reason")
        want, reason = _wanted(body, pools.get(pool_id)), _reason(body)
        author = views.author(request, reason)
        if dry_run:
            return views.answer(_forecast(want, author))

        def work() -> idempotency.Stored:
            return idempotency.Stored(201, shape(migrations.start_migration(want, author=author)))

        done = views.run_once(request, work)
        return views.answer(done.answer, status=done.status)


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
            want = migrations.withholding_plan(migration_id, step or MigrationStep.ABORT)
            gaps = map(str, migrations.unreserved_gaps(want.cidr, want.span))
            return views.answer(
                {"range": str(want.span), "reserves": [*gaps], **_forecast(want, author)}
            )

        def work() -> idempotency.Stored:
            taken = migrations.take_step(migration_id, step or MigrationStep.ABORT, author=author)
            return idempotency.Stored(200, shape(taken))

        done = views.run_once(request, work)
        return views.answer(done.answer, status=done.status)


def _step(value: object, at: str) -> MigrationStep:
    return MigrationStep(parsing.choice(value, at, tuple(step.value for step in MigrationStep)))


def _reason(body: object_reader.Fields) -> str:
    """The reason, after which the body has been read: InvalidInput with all problems."""
    reason = body.parse("reason", parsing.reason) if body.has("reason") else ""
    body.report.raise_any()
    return reason or ""


def _wanted(body: object_reader.Fields, pool: Pool) -> migrations.MigrationPlan:
    cidr = body.parse("cidr", lambda value, at: addresses.parse_cidr(value, field=at))
    span = to = None
    if body.has("range"):
        span = body.parse("range", lambda value, at: addresses.parse_range(value, field=at))
    if body.has("to"):
        to = body.parse("to", lambda value, at: addresses.parse_cidr(value, field=at))
    body.report.raise_any()
    if cidr is None:  # it would have been reported
        raise AssertionError
    return migrations.plan_migration(pool, cidr, span=span, to=to)


def _forecast(want: migrations.MigrationPlan, author: events.Author) -> dict[str, Any]:
    found = forecast.forecast_migration(want, author=author)
    return {
        "fits": found.fits,
        "in_use": found.in_use,
        "nodes": found.nodes,
        "free_after": str(found.after.free) if found.after else None,
        "findings": [guides.finding(one) for one in found.findings],
    }


def shape(
    migration: CIDRMigration, *, told: int = cidr_migration_progress.MOST_HOLDERS
) -> dict[str, Any]:
    """As it is answered, with the holders that have the most blocks."""
    progress = cidr_migration_progress.migration_progress(migration, holder_limit=told)
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
        "waiting": pool_cidrs.waiting(drift.conflicts_of_pool(migration.pool)),
        "orphaned": progress.orphaned,
        "in_use": progress.in_use,
        "held": progress.held,
        "cooling": progress.cooling,
        "total": progress.total,
        "percent": progress.percent,
        "holders": [
            {
                "kind": one.holder_kind,
                "id": one.holder_id,
                "state": one.state,
                "blocks": one.blocks,
                "first": one.first,
                "until": time(one.until),
            }
            for one in progress.holders
        ],
        "reason": migration.reason,
        "started_by": migration.started_by,
        "started_at": time(migration.started_at),
        "ended_at": time(migration.ended_at),
    }
