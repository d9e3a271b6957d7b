"""Connections to clusters, and what is seen through them. Goes before the code."""

import django.contrib.postgres.fields
import django.db.models.deletion
import pghistory.utils
import pgtrigger.compiler
import pgtrigger.migrations
from django.conf import settings
from django.db import migrations, models

from pools import sql


class Migration(migrations.Migration):

    dependencies = [
        ('pools', '0005_block_speed'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name='Connection',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('server', models.CharField(max_length=500)),
                ('sealed', models.TextField(editable=False)),
                ('in_cluster', models.BooleanField(default=False)),
                ('mode', models.CharField(choices=[('observed', 'observed'), ('managed', 'managed')], default='observed', max_length=8)),
                ('duties', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('pools', 'CiliumPodIPPools'), ('pod-cidrs', 'PodCIDRs of CiliumNodes'), ('claims', 'status of IPAMClaims'), ('ippool-status', 'status of IPPools'), ('conversion', 'lazy conversion of v2alpha1 pools')], max_length=16), blank=True, default=list, size=None)),
                ('paused', models.BooleanField(default=False)),
                ('identity', models.CharField(blank=True, default='', editable=False, max_length=64)),
                ('version', models.CharField(blank=True, default='', editable=False, max_length=64)),
                ('tried_at', models.DateTimeField(editable=False, null=True)),
                ('succeeded_at', models.DateTimeField(editable=False, null=True)),
                ('error_code', models.CharField(blank=True, default='', editable=False, max_length=63)),
                ('error', models.CharField(blank=True, default='', editable=False, max_length=500)),
                ('failures', models.PositiveIntegerField(default=0, editable=False)),
                ('due_at', models.DateTimeField(editable=False)),
                ('leased_by', models.CharField(blank=True, default='', editable=False, max_length=200)),
                ('leased_until', models.DateTimeField(editable=False, null=True)),
                ('fence', models.BigIntegerField(default=0, editable=False)),
                ('watched_by', models.CharField(blank=True, default='', editable=False, max_length=200)),
                ('watched_until', models.DateTimeField(editable=False, null=True)),
            ],
            options={
                'ordering': ['cluster__name'],
            },
        ),
        migrations.CreateModel(
            name='ConnectionEvent',
            fields=[
                ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                ('pgh_label', models.TextField(help_text='The event label.')),
                ('pgh_context', pghistory.utils.JSONField(null=True)),
                ('server', models.CharField(max_length=500)),
                ('mode', models.CharField(choices=[('observed', 'observed'), ('managed', 'managed')], default='observed', max_length=8)),
                ('duties', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('pools', 'CiliumPodIPPools'), ('pod-cidrs', 'PodCIDRs of CiliumNodes'), ('claims', 'status of IPAMClaims'), ('ippool-status', 'status of IPPools'), ('conversion', 'lazy conversion of v2alpha1 pools')], max_length=16), blank=True, default=list, size=None)),
                ('paused', models.BooleanField(default=False)),
                ('in_cluster', models.BooleanField(default=False)),
                ('identity', models.CharField(blank=True, default='', editable=False, max_length=64)),
                ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='Drift',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=63)),
                ('namespace', models.CharField(blank=True, default='', max_length=253)),
                ('name', models.CharField(max_length=253)),
                ('path', models.CharField(max_length=500)),
                ('desired', models.JSONField(null=True)),
                ('observed', models.JSONField(null=True)),
                ('managers', models.JSONField(default=list)),
                ('since', models.DateTimeField()),
                ('conflict', models.CharField(blank=True, default='', max_length=1000)),
                ('ignored_at', models.DateTimeField(blank=True, null=True)),
                ('ignored_reason', models.CharField(blank=True, default='', max_length=500)),
            ],
            options={
                'verbose_name': 'difference',
                'verbose_name_plural': 'differences',
                'ordering': ['cluster_id', 'kind', 'namespace', 'name', 'path'],
            },
        ),
        migrations.CreateModel(
            name='Finding',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=63)),
                ('code', models.CharField(max_length=63)),
                ('subject', models.CharField(max_length=600)),
                ('severity', models.CharField(choices=[('error', 'error'), ('warning', 'warning')], default='warning', max_length=7)),
                ('message', models.CharField(max_length=1000)),
                ('details', models.JSONField(default=dict)),
                ('since', models.DateTimeField()),
            ],
            options={
                'ordering': ['-since', '-id'],
            },
        ),
        migrations.CreateModel(
            name='ObservedObject',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('kind', models.CharField(max_length=63)),
                ('api_version', models.CharField(max_length=128)),
                ('namespace', models.CharField(blank=True, default='', max_length=253)),
                ('name', models.CharField(max_length=253)),
                ('uid', models.CharField(max_length=64)),
                ('resource_version', models.CharField(max_length=64)),
                ('manifest', models.JSONField()),
                ('problem_code', models.CharField(blank=True, default='', max_length=63)),
                ('problem', models.CharField(blank=True, default='', max_length=1000)),
                ('pending', models.BooleanField(default=False)),
                ('first_seen_at', models.DateTimeField()),
                ('changed_at', models.DateTimeField()),
                ('missed_at', models.DateTimeField(blank=True, null=True)),
            ],
            options={
                'verbose_name': 'object of a cluster',
                'verbose_name_plural': 'objects of clusters',
                'ordering': ['cluster_id', 'kind', 'namespace', 'name'],
            },
        ),
        migrations.CreateModel(
            name='Run',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('trigger', models.CharField(choices=[('schedule', 'schedule'), ('watch', 'watch'), ('change', 'change'), ('dry-run', 'dry run')], max_length=8)),
                ('started_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(blank=True, null=True)),
                ('succeeded', models.BooleanField(default=False)),
                ('kinds', models.JSONField(default=dict)),
                ('error_code', models.CharField(blank=True, default='', max_length=63)),
                ('error', models.CharField(blank=True, default='', max_length=500)),
            ],
            options={
                'verbose_name': 'pass',
                'verbose_name_plural': 'passes',
                'ordering': ['-id'],
            },
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='pool',
            name='created_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='pool',
            name='changed_update',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='pool',
            name='deleted_delete',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='poolcidr',
            name='created_insert',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='poolcidr',
            name='changed_update',
        ),
        pgtrigger.migrations.RemoveTrigger(
            model_name='poolcidr',
            name='deleted_delete',
        ),
        migrations.AddField(
            model_name='pool',
            name='orphaned_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='poolcidr',
            name='orphaned_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='poolcidrevent',
            name='orphaned_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name='poolevent',
            name='orphaned_at',
            field=models.DateTimeField(blank=True, editable=False, null=True),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='pool',
            trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_poolevent" ("allow_first_ip", "allow_last_ip", "category", "cluster_id", "cooldown_seconds", "description", "mask_size_v4", "mask_size_v6", "name", "orphaned_at", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") VALUES (NEW."allow_first_ip", NEW."allow_last_ip", NEW."category", NEW."cluster_id", NEW."cooldown_seconds", NEW."description", NEW."mask_size_v4", NEW."mask_size_v6", NEW."name", NEW."orphaned_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id"); RETURN NULL;', hash='dc4a3f1cc373d08f82e0b33bcdafbfb0e0ac6664', operation='INSERT', pgid='pgtrigger_created_insert_03ae5', table='pools_pool', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='pool',
            trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."allow_first_ip" IS DISTINCT FROM (NEW."allow_first_ip") OR OLD."allow_last_ip" IS DISTINCT FROM (NEW."allow_last_ip") OR OLD."category" IS DISTINCT FROM (NEW."category") OR OLD."cluster_id" IS DISTINCT FROM (NEW."cluster_id") OR OLD."cooldown_seconds" IS DISTINCT FROM (NEW."cooldown_seconds") OR OLD."description" IS DISTINCT FROM (NEW."description") OR OLD."mask_size_v4" IS DISTINCT FROM (NEW."mask_size_v4") OR OLD."mask_size_v6" IS DISTINCT FROM (NEW."mask_size_v6") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."orphaned_at" IS DISTINCT FROM (NEW."orphaned_at"))', func='INSERT INTO "pools_poolevent" ("allow_first_ip", "allow_last_ip", "category", "cluster_id", "cooldown_seconds", "description", "mask_size_v4", "mask_size_v6", "name", "orphaned_at", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") VALUES (NEW."allow_first_ip", NEW."allow_last_ip", NEW."category", NEW."cluster_id", NEW."cooldown_seconds", NEW."description", NEW."mask_size_v4", NEW."mask_size_v6", NEW."name", NEW."orphaned_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id"); RETURN NULL;', hash='55ea973890dcd3e9fd8a71a68ddc80672f8c17fd', operation='UPDATE', pgid='pgtrigger_changed_update_250cb', table='pools_pool', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='pool',
            trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_poolevent" ("allow_first_ip", "allow_last_ip", "category", "cluster_id", "cooldown_seconds", "description", "mask_size_v4", "mask_size_v6", "name", "orphaned_at", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") VALUES (OLD."allow_first_ip", OLD."allow_last_ip", OLD."category", OLD."cluster_id", OLD."cooldown_seconds", OLD."description", OLD."mask_size_v4", OLD."mask_size_v6", OLD."name", OLD."orphaned_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id"); RETURN NULL;', hash='d96d740f49a8a19b865d01df7441c55d7bcf6dbf', operation='DELETE', pgid='pgtrigger_deleted_delete_c02f8', table='pools_pool', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='poolcidr',
            trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_poolcidrevent" ("cidr", "orphaned_at", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "position") VALUES (NEW."cidr", NEW."orphaned_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."pool_id", NEW."position"); RETURN NULL;', hash='7c702acbed80077c2d25bb6865c1fcdab84396ee', operation='INSERT', pgid='pgtrigger_created_insert_b2914', table='pools_poolcidr', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='poolcidr',
            trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."cidr" IS DISTINCT FROM (NEW."cidr") OR OLD."orphaned_at" IS DISTINCT FROM (NEW."orphaned_at") OR OLD."pool_id" IS DISTINCT FROM (NEW."pool_id") OR OLD."position" IS DISTINCT FROM (NEW."position"))', func='INSERT INTO "pools_poolcidrevent" ("cidr", "orphaned_at", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "position") VALUES (NEW."cidr", NEW."orphaned_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."pool_id", NEW."position"); RETURN NULL;', hash='b00d9492086eaa4dea8f44c4ad4c45295b34ab85', operation='UPDATE', pgid='pgtrigger_changed_update_1ceca', table='pools_poolcidr', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='poolcidr',
            trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_poolcidrevent" ("cidr", "orphaned_at", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "position") VALUES (OLD."cidr", OLD."orphaned_at", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."pool_id", OLD."position"); RETURN NULL;', hash='0241916e6508e00cd3d1dfb14994a58fc65d424f', operation='DELETE', pgid='pgtrigger_deleted_delete_98580', table='pools_poolcidr', when='AFTER')),
        ),
        migrations.AddField(
            model_name='connection',
            name='cluster',
            field=models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='connection', to='pools.cluster'),
        ),
        migrations.AddField(
            model_name='connectionevent',
            name='cluster',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster'),
        ),
        migrations.AddField(
            model_name='connectionevent',
            name='pgh_obj',
            field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.connection'),
        ),
        migrations.AddField(
            model_name='drift',
            name='cluster',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='drifts', to='pools.cluster'),
        ),
        migrations.AddField(
            model_name='drift',
            name='ignored_by',
            field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
        ),
        migrations.AddField(
            model_name='finding',
            name='cluster',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='findings', to='pools.cluster'),
        ),
        migrations.AddField(
            model_name='observedobject',
            name='cluster',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='objects_seen', to='pools.cluster'),
        ),
        migrations.AddField(
            model_name='run',
            name='cluster',
            field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='pools.cluster'),
        ),
        migrations.AddIndex(
            model_name='connection',
            index=models.Index(condition=models.Q(('paused', False)), fields=['due_at'], name='connection_due'),
        ),
        migrations.AddConstraint(
            model_name='connection',
            constraint=models.UniqueConstraint(condition=models.Q(('identity', ''), _negated=True), fields=('identity',), name='cluster_registered_once', violation_error_code='same_cluster'),
        ),
        migrations.AddConstraint(
            model_name='connection',
            constraint=models.CheckConstraint(condition=models.Q(models.Q(('mode', 'observed'), _negated=True), ('duties', []), _connector='OR'), name='an_observed_cluster_has_no_duties'),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='connection',
            trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_connectionevent" ("cluster_id", "duties", "identity", "in_cluster", "mode", "paused", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "server") VALUES (NEW."cluster_id", NEW."duties", NEW."identity", NEW."in_cluster", NEW."mode", NEW."paused", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."server"); RETURN NULL;', hash='2051118c88dc6c4b18e86391c872ba58220dd23c', operation='INSERT', pgid='pgtrigger_created_insert_07e43', table='pools_connection', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='connection',
            trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."cluster_id" IS DISTINCT FROM (NEW."cluster_id") OR OLD."duties" IS DISTINCT FROM (NEW."duties") OR OLD."identity" IS DISTINCT FROM (NEW."identity") OR OLD."in_cluster" IS DISTINCT FROM (NEW."in_cluster") OR OLD."mode" IS DISTINCT FROM (NEW."mode") OR OLD."paused" IS DISTINCT FROM (NEW."paused") OR OLD."server" IS DISTINCT FROM (NEW."server"))', func='INSERT INTO "pools_connectionevent" ("cluster_id", "duties", "identity", "in_cluster", "mode", "paused", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "server") VALUES (NEW."cluster_id", NEW."duties", NEW."identity", NEW."in_cluster", NEW."mode", NEW."paused", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."server"); RETURN NULL;', hash='3b0c46bd90439f802ff63eabf366a685b22dd8ed', operation='UPDATE', pgid='pgtrigger_changed_update_e0d68', table='pools_connection', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='connection',
            trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_connectionevent" ("cluster_id", "duties", "identity", "in_cluster", "mode", "paused", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "server") VALUES (OLD."cluster_id", OLD."duties", OLD."identity", OLD."in_cluster", OLD."mode", OLD."paused", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."server"); RETURN NULL;', hash='fc8cb4536cef4d84302496571e0f9617a0a29f86', operation='DELETE', pgid='pgtrigger_deleted_delete_8952d', table='pools_connection', when='AFTER')),
        ),
        pgtrigger.migrations.AddTrigger(
            model_name='connectionevent',
            trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='e7f937d52a17da13cdb312150e25caff3de26d5e', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_b82a8', table='pools_connectionevent', when='BEFORE')),
        ),
        migrations.AddConstraint(
            model_name='drift',
            constraint=models.UniqueConstraint(fields=('cluster', 'kind', 'namespace', 'name', 'path'), name='drift_unique'),
        ),
        migrations.AddConstraint(
            model_name='finding',
            constraint=models.UniqueConstraint(fields=('cluster', 'kind', 'code', 'subject'), name='finding_unique'),
        ),
        migrations.AddIndex(
            model_name='observedobject',
            index=models.Index(fields=['cluster', 'kind', 'namespace', 'name'], name='object_seen_name'),
        ),
        migrations.AddIndex(
            model_name='observedobject',
            index=models.Index(condition=models.Q(('pending', True), models.Q(('problem_code', ''), _negated=True), ('missed_at__isnull', False), _connector='OR'), fields=['cluster', 'kind'], name='object_seen_open'),
        ),
        migrations.AddConstraint(
            model_name='observedobject',
            constraint=models.UniqueConstraint(fields=('cluster', 'kind', 'uid'), name='object_seen_unique'),
        ),
        migrations.AddIndex(
            model_name='run',
            index=models.Index(fields=['cluster', '-id'], name='run_cluster'),
        ),
        *sql.install("rules"),  # the view of all events: 0024
    ]
