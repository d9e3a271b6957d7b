import django.contrib.postgres.fields
import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from pools import sql

_ID = models.BigAutoField(
    auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
)


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0016_references"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditLayout",
            fields=[
                ("id", _ID.clone()),
                ("columns", models.JSONField()),
                ("made_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="AuditSegment",
            fields=[
                ("id", models.BigIntegerField(primary_key=True, serialize=False)),
                ("day", models.DateField()),
                ("after_id", models.BigIntegerField(unique=True)),
                ("last_id", models.BigIntegerField(unique=True)),
                ("count", models.PositiveIntegerField()),
                (
                    "layout",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="+",
                        to="pools.auditlayout",
                    ),
                ),
                ("oldest_at", models.DateTimeField()),
                ("newest_at", models.DateTimeField()),
                ("marks", models.BinaryField()),
                ("marks_digest", models.CharField(max_length=64)),
                ("digest", models.CharField(max_length=64)),
                ("sealed_at", models.DateTimeField()),
                ("purged_at", models.DateTimeField(null=True)),
                ("kept", models.PositiveIntegerField(null=True)),
            ],
            options={
                "ordering": ["id"],
                "indexes": [
                    models.Index(fields=["day", "id"], name="audit_segment_day"),
                    models.Index(fields=["newest_at"], name="audit_segment_newest"),
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditState",
            fields=[
                (
                    "id",
                    models.PositiveSmallIntegerField(
                        default=1, primary_key=True, serialize=False
                    ),
                ),
                ("segment", models.BigIntegerField(default=0)),
                ("horizon", models.BigIntegerField(default=0)),
                (
                    "waits_for",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=40), default=list, size=None
                    ),
                ),
                ("lag_seconds", models.FloatField(default=0)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("id", 1)), name="audit_state_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AuditVerification",
            fields=[
                ("id", _ID.clone()),
                ("started_at", models.DateTimeField()),
                ("finished_at", models.DateTimeField()),
                ("since", models.DateField(null=True)),
                ("segments", models.PositiveIntegerField()),
                ("events", models.PositiveBigIntegerField()),
                ("fault_count", models.PositiveIntegerField()),
                ("faults", models.JSONField(default=list)),
            ],
            options={"ordering": ["-id"]},
        ),
        migrations.CreateModel(
            name="SegmentName",
            fields=[
                ("id", _ID.clone()),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("actor", "actor"),
                            ("org", "org"),
                            ("env", "env"),
                            ("uid", "uid"),
                        ],
                        max_length=5,
                    ),
                ),
                ("name", models.CharField(max_length=253)),
                (
                    "segment",
                    models.ForeignKey(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="pools.auditsegment",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("kind", "name", "segment"), name="segment_name_unique"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="SegmentTally",
            fields=[
                ("id", _ID.clone()),
                ("pool_id", models.BigIntegerField()),
                ("family", models.PositiveSmallIntegerField()),
                (
                    "segment",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="pools.auditsegment",
                    ),
                ),
                ("held", models.IntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        fields=("pool_id", "segment", "family"), name="segment_tally_unique"
                    )
                ],
            },
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='auditsegment',
            trigger=pgtrigger.compiler.Trigger(name='kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='39457499b2ea5c7e5dc849d179254470c34693ec', operation='DELETE', pgid='pgtrigger_kept_bd2c4', table='pools_auditsegment', when='BEFORE')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='auditsegment',
            trigger=pgtrigger.compiler.Trigger(name='sealed', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."day" IS DISTINCT FROM (NEW."day") OR OLD."after_id" IS DISTINCT FROM (NEW."after_id") OR OLD."last_id" IS DISTINCT FROM (NEW."last_id") OR OLD."count" IS DISTINCT FROM (NEW."count") OR OLD."layout_id" IS DISTINCT FROM (NEW."layout_id") OR OLD."oldest_at" IS DISTINCT FROM (NEW."oldest_at") OR OLD."newest_at" IS DISTINCT FROM (NEW."newest_at") OR OLD."marks_digest" IS DISTINCT FROM (NEW."marks_digest") OR OLD."digest" IS DISTINCT FROM (NEW."digest") OR OLD."sealed_at" IS DISTINCT FROM (NEW."sealed_at"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='01284ebb3283d36fbaad6490a593a1dcc195217b', operation='UPDATE', pgid='pgtrigger_sealed_905a5', table='pools_auditsegment', when='BEFORE')),
        ),
        # pgtrigger's function, which every migration with triggers writes anew, is replaced again.
        *sql.install("rules"),
    ]
