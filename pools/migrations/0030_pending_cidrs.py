"""What a cluster's objects have is taken, and a change of CIDRs that they do not show is pending."""

import django.contrib.postgres.fields
import netfields.fields
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from pools import sql


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0029_nudges"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="poolcidr",
            name="created_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="poolcidr",
            name="changed_update",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="poolcidr",
            name="deleted_delete",
        ),
        migrations.AddField(
            model_name="drift",
            name="conflict_code",
            field=models.CharField(blank=True, db_default="", default="", max_length=63),
        ),
        migrations.AddField(
            model_name="observedobject",
            name="cidrs",
            field=django.contrib.postgres.fields.ArrayField(
                base_field=netfields.fields.CidrAddressField(max_length=43),
                editable=False,
                null=True,
                size=None,
            ),
        ),
        migrations.AddField(
            model_name="poolcidr",
            name="pending",
            field=models.CharField(
                blank=True,
                choices=[("addition", "addition"), ("removal", "removal")],
                db_default="",
                default="",
                editable=False,
                max_length=8,
            ),
        ),
        migrations.AddField(
            model_name="poolcidrevent",
            name="pending",
            field=models.CharField(
                blank=True,
                choices=[("addition", "addition"), ("removal", "removal")],
                db_default="",
                default="",
                editable=False,
                max_length=8,
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="poolcidr",
            trigger=pgtrigger.compiler.Trigger(
                name="created_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='INSERT INTO "pools_poolcidrevent" ("cidr", "orphaned_at", "pending", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "position") VALUES (NEW."cidr", NEW."orphaned_at", NEW."pending", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."pool_id", NEW."position"); RETURN NULL;',
                    hash="29781276cc17b4fa11180200d5a470adcc2544a2",
                    operation="INSERT",
                    pgid="pgtrigger_created_insert_b2914",
                    table="pools_poolcidr",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="poolcidr",
            trigger=pgtrigger.compiler.Trigger(
                name="changed_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."cidr" IS DISTINCT FROM (NEW."cidr") OR OLD."orphaned_at" IS DISTINCT FROM (NEW."orphaned_at") OR OLD."pending" IS DISTINCT FROM (NEW."pending") OR OLD."pool_id" IS DISTINCT FROM (NEW."pool_id") OR OLD."position" IS DISTINCT FROM (NEW."position"))',
                    func='INSERT INTO "pools_poolcidrevent" ("cidr", "orphaned_at", "pending", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "position") VALUES (NEW."cidr", NEW."orphaned_at", NEW."pending", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."pool_id", NEW."position"); RETURN NULL;',
                    hash="b144378b44f84d43530073389c902f367962c1ab",
                    operation="UPDATE",
                    pgid="pgtrigger_changed_update_1ceca",
                    table="pools_poolcidr",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="poolcidr",
            trigger=pgtrigger.compiler.Trigger(
                name="deleted_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='INSERT INTO "pools_poolcidrevent" ("cidr", "orphaned_at", "pending", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "position") VALUES (OLD."cidr", OLD."orphaned_at", OLD."pending", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."pool_id", OLD."position"); RETURN NULL;',
                    hash="b7c2b92b1a3ed63d00fe8c49867864b51ed608f1",
                    operation="DELETE",
                    pgid="pgtrigger_deleted_delete_98580",
                    table="pools_poolcidr",
                    when="AFTER",
                ),
            ),
        ),
        *sql.install("rules", "observed_cidrs"),
        # The trigger reads the objects that were seen before.
        migrations.RunSQL(
            "UPDATE pools_observedobject SET manifest = manifest WHERE kind = 'CiliumPodIPPool'",
            migrations.RunSQL.noop,
        ),
    ]
