"""Lighter triggers, and statement triggers instead of foreign keys, for blocks. Goes before or after the code."""

import django.db.models.deletion
import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from pools import sql


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0004_environments"),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name="block",
            name="allocated_insert",
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name="block",
            name="updated_update",
        ),
        migrations.AlterField(
            model_name="block",
            name="pool",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="blocks",
                to="pools.pool",
            ),
        ),
        migrations.AlterField(
            model_name="block",
            name="space",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.PROTECT,
                related_name="+",
                to="pools.addressspace",
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="block",
            trigger=pgtrigger.compiler.Trigger(
                name="allocated_insert",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "pools_blockevent" ("allocated_at", "available_from", "category", "cidr", "env", "family", "holder_id", "holder_kind", "holder_uid", "org", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "released_at", "space_id", "state", "withheld") SELECT new_values."allocated_at", new_values."available_from", new_values."category", new_values."cidr", new_values."env", new_values."family", new_values."holder_id", new_values."holder_kind", new_values."holder_uid", new_values."org", (SELECT COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB), (SELECT ipam_now()), \'allocated\', new_values."id", new_values."pool_id", new_values."released_at", new_values."space_id", new_values."state", new_values."withheld" FROM ( SELECT new_values.* FROM new_values WHERE (new_values."state" = \'held\') ) AS new_values, _pgh_attached_context; RETURN NULL;',
                    hash="5ddc5326196ee364c28fa8cfdf9177433f6b6a1f",
                    level="STATEMENT",
                    operation="INSERT",
                    pgid="pgtrigger_allocated_insert_b7234",
                    referencing="REFERENCING NEW TABLE AS new_values ",
                    table="pools_block",
                    when="AFTER",
                ),
            ),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name="block",
            trigger=pgtrigger.compiler.Trigger(
                name="updated_update",
                sql=pgtrigger.compiler.UpsertTriggerSql(
                    func='IF OLD.state = NEW.state AND (NEW.state <> \'held\' OR (OLD.holder_id, OLD.holder_kind, OLD.holder_uid, OLD.org, OLD.env) = (NEW.holder_id, NEW.holder_kind, NEW.holder_uid, NEW.org, NEW.env)) THEN RETURN NULL; END IF; INSERT INTO "pools_blockevent" ("allocated_at", "available_from", "category", "cidr", "env", "family", "holder_id", "holder_kind", "holder_uid", "org", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "released_at", "space_id", "state", "withheld") VALUES (NEW."allocated_at", NEW."available_from", NEW."category", NEW."cidr", NEW."env", NEW."family", NEW."holder_id", NEW."holder_kind", NEW."holder_uid", NEW."org", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), CASE WHEN OLD.state <> \'held\' AND NEW.state = \'held\' THEN \'allocated\' WHEN OLD.state = \'held\' AND NEW.state <> \'held\' THEN \'released\' WHEN OLD.state = \'cooling\' AND NEW.state = \'available\' THEN \'cooldown_ended\' ELSE \'changed\' END, NEW."id", NEW."pool_id", NEW."released_at", NEW."space_id", NEW."state", NEW."withheld"); RETURN NULL;',
                    hash="c88b101cb7a68157cf84eecaeb2dece21fe513db",
                    operation="UPDATE",
                    pgid="pgtrigger_updated_update_e70be",
                    table="pools_block",
                    when="AFTER",
                ),
            ),
        ),
        *sql.install("rules", "allocate"),
    ]
