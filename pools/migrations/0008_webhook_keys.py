"""The key with which a cluster's API server asks the admission webhook. Goes before the code."""

import pgtrigger.compiler
import pgtrigger.migrations
from django.db import migrations, models

from pools import sql


class Migration(migrations.Migration):

    dependencies = [
        ('pools', '0007_connection_roles'),
    ]

    operations = [
        pgtrigger.migrations.RemoveTrigger(
            model_name='cluster',
            name='created_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='cluster',
            name='changed_update',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='cluster',
            name='deleted_delete',
        ),
        migrations.AddField(
            model_name='cluster',
            name='webhook_digest',
            field=models.CharField(blank=True, default='', editable=False, max_length=64),
        ),
        migrations.AddField(
            model_name='cluster',
            name='webhook_key_made_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='clusterevent',
            name='webhook_key_made_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cluster',
            trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_clusterevent" ("cluster_prefix", "instance_dns", "instance_gateway", "instance_mtu", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "webhook_key_made_at") VALUES (NEW."cluster_prefix", NEW."instance_dns", NEW."instance_gateway", NEW."instance_mtu", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."webhook_key_made_at"); RETURN NULL;', hash='69300205bd20380526b82ea6f02e2c8301494afd', operation='INSERT', pgid='pgtrigger_created_insert_8be31', table='pools_cluster', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cluster',
            trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."cluster_prefix" IS DISTINCT FROM (NEW."cluster_prefix") OR OLD."instance_dns" IS DISTINCT FROM (NEW."instance_dns") OR OLD."instance_gateway" IS DISTINCT FROM (NEW."instance_gateway") OR OLD."instance_mtu" IS DISTINCT FROM (NEW."instance_mtu") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."webhook_key_made_at" IS DISTINCT FROM (NEW."webhook_key_made_at"))', func='INSERT INTO "pools_clusterevent" ("cluster_prefix", "instance_dns", "instance_gateway", "instance_mtu", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "webhook_key_made_at") VALUES (NEW."cluster_prefix", NEW."instance_dns", NEW."instance_gateway", NEW."instance_mtu", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."webhook_key_made_at"); RETURN NULL;', hash='c7a452b24c212ba73d3f5f0898a092c2b84d7fde', operation='UPDATE', pgid='pgtrigger_changed_update_e0029', table='pools_cluster', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='cluster',
            trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_clusterevent" ("cluster_prefix", "instance_dns", "instance_gateway", "instance_mtu", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "webhook_key_made_at") VALUES (OLD."cluster_prefix", OLD."instance_dns", OLD."instance_gateway", OLD."instance_mtu", OLD."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."webhook_key_made_at"); RETURN NULL;', hash='23cd39bb07580b65253c5dab794901f10be1170c', operation='DELETE', pgid='pgtrigger_deleted_delete_8aee8', table='pools_cluster', when='AFTER')),
        ),
        migrations.AddConstraint(
            model_name='cluster',
            constraint=models.UniqueConstraint(condition=models.Q(('webhook_digest', ''), _negated=True), fields=('webhook_digest',), name='webhook_digest_unique'),
        ),
        *sql.install("rules"),
    ]
