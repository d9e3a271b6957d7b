"""Who made, changed and deleted webhooks is in the log of events."""

import django.contrib.postgres.fields
import django.db.models.deletion
import pghistory.utils
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from pools import sql


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0023_operating_roles"),
    ]

    operations = [
        migrations.CreateModel(
            name="WebhookTargetEvent",
            fields=[
                ("pgh_created_at", models.DateTimeField(auto_now_add=True)),
                ("pgh_label", models.TextField(help_text="The event label.")),
                ("pgh_context", pghistory.utils.JSONField(null=True)),
                ("name", models.CharField(max_length=100)),
                (
                    "host",
                    models.CharField(db_default="", default="", editable=False, max_length=500),
                ),
                (
                    "codes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=63),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("secret_made_at", models.DateTimeField()),
                (
                    "pgh_id",
                    models.BigIntegerField(
                        db_default=models.Func(
                            models.Value("pools_event_number"), function="nextval"
                        ),
                        primary_key=True,
                        serialize=False,
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.AddField(
            model_name="webhooktarget",
            name="host",
            field=models.CharField(db_default="", default="", editable=False, max_length=500),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="webhooktarget",
            trigger=pgtrigger.compiler.Trigger(
                name="created_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='INSERT INTO "pools_webhooktargetevent" ("codes", "enabled", "host", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."codes", NEW."enabled", NEW."host", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."secret_made_at"); RETURN NULL;',
                    hash="4ca449824434e846714cb67f00f4b81a4127ff3a",
                    operation="INSERT",
                    pgid="pgtrigger_created_insert_98c71",
                    table="pools_webhooktarget",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="webhooktarget",
            trigger=pgtrigger.compiler.Trigger(
                name="changed_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."codes" IS DISTINCT FROM (NEW."codes") OR OLD."enabled" IS DISTINCT FROM (NEW."enabled") OR OLD."name" IS DISTINCT FROM (NEW."name"))',
                    func='INSERT INTO "pools_webhooktargetevent" ("codes", "enabled", "host", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."codes", NEW."enabled", NEW."host", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."secret_made_at"); RETURN NULL;',
                    hash="b211d7ac3ccbd6cf9f383261a03dbf8075d36c44",
                    operation="UPDATE",
                    pgid="pgtrigger_changed_update_a6829",
                    table="pools_webhooktarget",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="webhooktarget",
            trigger=pgtrigger.compiler.Trigger(
                name="url_changed_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."url" IS DISTINCT FROM (NEW."url"))',
                    func='INSERT INTO "pools_webhooktargetevent" ("codes", "enabled", "host", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."codes", NEW."enabled", NEW."host", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'url_changed\', NEW."id", NEW."secret_made_at"); RETURN NULL;',
                    hash="d8d5f65b879902a62818476f372dd940f02c7947",
                    operation="UPDATE",
                    pgid="pgtrigger_url_changed_update_de258",
                    table="pools_webhooktarget",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="webhooktarget",
            trigger=pgtrigger.compiler.Trigger(
                name="ca_changed_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."ca" IS DISTINCT FROM (NEW."ca"))',
                    func='INSERT INTO "pools_webhooktargetevent" ("codes", "enabled", "host", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."codes", NEW."enabled", NEW."host", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'ca_changed\', NEW."id", NEW."secret_made_at"); RETURN NULL;',
                    hash="ff89d0eb508ad67a1c7145473fda4f299c9dcbbc",
                    operation="UPDATE",
                    pgid="pgtrigger_ca_changed_update_ca85b",
                    table="pools_webhooktarget",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="webhooktarget",
            trigger=pgtrigger.compiler.Trigger(
                name="secret_replaced_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    condition='WHEN (OLD."secret_made_at" IS DISTINCT FROM (NEW."secret_made_at") AND NOT (OLD."sealed" = \'\'))',
                    func='INSERT INTO "pools_webhooktargetevent" ("codes", "enabled", "host", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."codes", NEW."enabled", NEW."host", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'secret_replaced\', NEW."id", NEW."secret_made_at"); RETURN NULL;',
                    hash="916bb67fcb40998a8fa3ce7a12f0a4efaf41e59a",
                    operation="UPDATE",
                    pgid="pgtrigger_secret_replaced_update_d6e56",
                    table="pools_webhooktarget",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="webhooktarget",
            trigger=pgtrigger.compiler.Trigger(
                name="deleted_delete",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='INSERT INTO "pools_webhooktargetevent" ("codes", "enabled", "host", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (OLD."codes", OLD."enabled", OLD."host", OLD."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."secret_made_at"); RETURN NULL;',
                    hash="4517272cf762f110067b9d2c434b28e9e38d71c3",
                    operation="DELETE",
                    pgid="pgtrigger_deleted_delete_69aa6",
                    table="pools_webhooktarget",
                    when="AFTER",
                ),
            ),
        ),
        migrations.AddField(
            model_name="webhooktargetevent",
            name="pgh_obj",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="pools.webhooktarget",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="webhooktargetevent",
            trigger=pgtrigger.compiler.Trigger(
                name="append_only",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;",
                    hash="d6a4eb7ce807792b600ffae73586ef198393e624",
                    operation="UPDATE OR DELETE",
                    pgid="pgtrigger_append_only_024a3",
                    table="pools_webhooktargetevent",
                    when="BEFORE",
                ),
            ),
        ),
        # pgtrigger's function, which every migration with triggers writes anew, is replaced again.
        *sql.install("rules", "event_log"),
    ]
