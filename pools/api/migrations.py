"""pools/{}/migrations/: migrate the blocks of a CIDR to another one, step by step."""

from typing import Any

from django.db.models import QuerySet
from drf_spectacular.utils import PolymorphicProxySerializer, extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from pools.api import lookups
from pools.api.clusters.guides import PreflightFindingSerializer
from pools.api.pools import WaitingFieldSerializer
from pools.cidr_migrations import forecast, migrations, progress
from pools.cidr_migrations.progress import MigrationStatus, MigrationStep
from pools.cilium import pool_sync
from pools.models import CIDRMigration
from pools.platform.rest import fields, filters, generics, keyset
from pools.platform.rest.serializers import Representation, Serializer

LISTED = 100  # newest migrations of a pool
_STEPS = [step.value for step in MigrationStep]
_DRY_RUN = filters.parameters(
    dry_run=filters.flag(help_text="true: only report what would happen.")
)


class DrainingHolderSerializer(Representation):
    """A holder with blocks in the range; `until` is the end of its last cooldown."""

    kind = fields.TextField(source="holder_kind")
    id = fields.TextField(source="holder_id")
    state = fields.TextField()
    blocks = fields.IntegerField()
    first = fields.CIDRField()
    until = fields.TimeField(allow_null=True)


class MigrationSerializer(Representation):
    """A migration, its progress, the steps that are possible now, and the holders with most blocks."""

    id = fields.IntegerField(source="migration.pk")
    pool_id = fields.IntegerField(source="migration.pool_id")
    pool = fields.TextField(source="migration.pool.name")
    cluster = fields.TextField(source="migration.pool.cluster.name")
    cidr = fields.CIDRField(source="migration.cidr")
    range = fields.RangeField()
    whole = fields.FlagField()
    to = fields.CIDRField(source="migration.to", allow_null=True)
    added = fields.FlagField(source="progress.added")
    state = fields.ChoiceField(
        [status.value for status in MigrationStatus], source="progress.status.value"
    )
    steps = fields.ListField(child=fields.ChoiceField(_STEPS))
    by = fields.ChoiceField(("register", "cluster"))
    unwritten = fields.FlagField(source="progress.unwritten")
    waiting = fields.ListField(child=WaitingFieldSerializer())
    orphaned = fields.FlagField(source="progress.orphaned")
    in_use = fields.IntegerField(source="progress.in_use")
    held = fields.IntegerField(source="progress.held")
    cooling = fields.IntegerField(source="progress.cooling")
    total = fields.IntegerField(source="progress.total")
    percent = fields.IntegerField(source="progress.percent")
    holders = fields.ListField(child=DrainingHolderSerializer(), source="progress.holders")
    reason = fields.TextField(source="migration.reason")
    started_by = fields.TextField(source="migration.started_by")
    started_at = fields.TimeField(source="migration.started_at")
    ended_at = fields.TimeField(source="migration.ended_at", allow_null=True)


class MigrationForecastSerializer(Representation):
    """What a migration would do; `free_after` is null if the change would be refused."""

    fits = fields.FlagField()
    in_use = fields.IntegerField()
    nodes = fields.IntegerField()
    free_after = fields.CountField(source="after.free", allow_null=True)
    findings = fields.ListField(child=PreflightFindingSerializer())


class MigrationStepForecastSerializer(MigrationForecastSerializer):
    """What a step would do, and the ranges that it would reserve."""

    range = fields.RangeField()
    reserves = fields.ListField(child=fields.RangeField())


class MigrationStartSerializer(Serializer):
    """The CIDR to retire, or a range of it, and its replacement."""

    example = {"cidr": "10.20.0.0/16", "to": "10.30.0.0/16", "reason": "Renumbering"}

    cidr = fields.CIDRField()
    range = fields.RangeField(required=False)
    to = fields.CIDRField(required=False)
    reason = fields.ReasonField(required=False, default="")


class MigrationStepSerializer(Serializer):
    step = fields.ChoiceField(_STEPS)
    reason = fields.ReasonField(required=False, default="")


class Migrations(generics.ListViewSet):
    """The newest migrations of a pool, without their holders."""

    queryset = CIDRMigration.objects.all()
    pagination_class = keyset.OnePage
    needs = {"GET": ("pools.view_pool",), "POST": ("pools.change_pool",)}
    idempotent = ("POST",)
    serializer_class = MigrationSerializer
    lookup_url_kwarg = "migration_id"
    row_text = "A migration, and the holders that still have blocks."

    def get_queryset(self) -> QuerySet[CIDRMigration]:
        rows = super().get_queryset().filter(pool=lookups.get_pool(self.kwargs["pool_id"]))
        return rows.select_related("pool__cluster", "pool_cidr__pool__cluster")[:LISTED]

    def paginate_queryset(self, queryset: Any) -> Any:
        rows = super().paginate_queryset(queryset)
        return [_document(row, holder_limit=0) for row in rows]

    @extend_schema(
        request=MigrationStartSerializer,
        responses={200: MigrationForecastSerializer, 201: MigrationSerializer},
    )
    @_DRY_RUN
    def create(self, request: Request, pool_id: int) -> Response:
        """Start the migration of a CIDR; nothing is reserved yet."""
        dry_run = self.query_values()["dry_run"]
        pool = lookups.get_pool(pool_id)
        values = self.read(request, MigrationStartSerializer)
        plan = migrations.plan_migration(
            pool, values["cidr"], span=values.get("range"), to=values.get("to")
        )
        author = self.author(values["reason"])
        if dry_run:
            migration_forecast = forecast.forecast_migration(plan, author=author)
            return self.respond(migration_forecast, MigrationForecastSerializer)
        return self.once(
            request,
            lambda: self.represent(_document(migrations.start_migration(plan, author=author))),
            status=201,
        )

    def retrieve(self, request: Request, pool_id: int, migration_id: int) -> Response:
        migration = migrations.get_migration(migration_id, pool_id=pool_id)
        return self.respond(_document(migration))

    @extend_schema(
        request=MigrationStepSerializer,
        responses=PolymorphicProxySerializer(
            "MigrationStepAnswer", [MigrationSerializer, MigrationStepForecastSerializer], None
        ),
    )
    @_DRY_RUN
    @generics.post_action("pools.change_pool", idempotent=True, url_name="migration-steps")
    def steps(self, request: Request, pool_id: int, migration_id: int) -> Response:
        """Do a step of a migration; `reserve` and `widen` have a dry run."""
        dry_run = self.query_values()["dry_run"]
        values = self.read(request, MigrationStepSerializer)
        step, author = MigrationStep(values["step"]), self.author(values["reason"])
        migrations.get_migration(migration_id, pool_id=pool_id)
        if dry_run:
            plan = migrations.withholding_plan(migration_id, step)
            gaps = migrations.unreserved_gaps(plan.cidr, plan.span)
            document = {"range": str(plan.span), "reserves": [str(gap) for gap in gaps]}
            migration_forecast = forecast.forecast_migration(plan, author=author)
            document |= self.represent(migration_forecast, MigrationForecastSerializer)
            return Response(document)
        return self.once(
            request,
            lambda: self.represent(
                _document(migrations.take_step(migration_id, step, author=author))
            ),
        )


def _document(
    migration: CIDRMigration, *, holder_limit: int = progress.MOST_HOLDERS
) -> dict[str, Any]:
    """Return what MigrationSerializer shows, with the `holder_limit` holders with most blocks."""
    migration_progress = progress.migration_progress(migration, holder_limit=holder_limit)
    return {
        "migration": migration,
        "progress": migration_progress,
        "range": progress.span_of(migration),
        "whole": progress.is_whole(migration),
        "steps": [step.value for step in migration_progress.steps],
        "by": "cluster" if migration_progress.by_cluster else "register",
        "waiting": pool_sync.conflicts_of_pool(migration.pool),
    }
