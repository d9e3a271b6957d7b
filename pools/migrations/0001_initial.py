"""The tables, and the types and functions that their columns name (CONTRIBUTING.md: a change of a model)."""

import django.contrib.auth.models
import django.contrib.postgres.constraints
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.fields.json
import netfields.fields
import pghistory.utils
import pgtrigger.compiler
import pgtrigger.migrations
import pools.models.fields
import pools.platform.database
import pools.sql
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('contenttypes', '0002_remove_content_type_name'),
        ('knox', '0009_extend_authtoken_field'),
        ('mfa', '0003_authenticator_type_uniq'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(pools.sql.before_tables(), migrations.RunSQL.noop),
        pools.platform.database.CreateTables(
            operations=[
                migrations.CreateModel(
                    name='Event',
                    fields=[
                        ('id', models.BigIntegerField(primary_key=True, serialize=False)),
                        ('at', models.DateTimeField()),
                        ('type', models.TextField()),
                        ('table', models.TextField()),
                        ('object_id', models.BigIntegerField()),
                        ('cluster_id', models.BigIntegerField(null=True)),
                        ('pool_id', models.BigIntegerField(null=True)),
                        ('cidr', models.TextField()),
                        ('holder_kind', models.TextField()),
                        ('holder_id', models.TextField()),
                        ('org', models.TextField(verbose_name='organization')),
                        ('env', models.TextField(verbose_name='environment')),
                        ('actor', models.TextField(verbose_name='actor')),
                        ('request_id', models.TextField()),
                        ('reason', models.TextField()),
                        ('message', models.TextField()),
                    ],
                    options={
                        'verbose_name': 'event',
                        'verbose_name_plural': 'events',
                        'db_table': 'pools_event_log',
                        'ordering': ['-id'],
                        'managed': False,
                    },
                ),
                migrations.CreateModel(
                    name='AddressSpace',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(blank=True, default='', max_length=253)),
                    ],
                    options={
                        'ordering': ['cluster_id', 'name'],
                    },
                ),
                migrations.CreateModel(
                    name='AllocationRequest',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('demand', models.JSONField()),
                        ('holder_kind', models.CharField(max_length=63)),
                        ('holder_id', models.CharField(max_length=253)),
                        ('org', models.CharField(blank=True, default='', max_length=253, verbose_name='organization')),
                        ('env', models.CharField(blank=True, default='', max_length=253, verbose_name='environment')),
                        ('state', models.CharField(choices=[('pending', 'pending'), ('fulfilled', 'fulfilled'), ('cancelled', 'cancelled')], default='pending', max_length=9)),
                        ('attempts', models.PositiveIntegerField(default=1, verbose_name='attempts')),
                        ('last_error', models.CharField(blank=True, default='', max_length=500, verbose_name='last error')),
                        ('created_at', models.DateTimeField()),
                        ('next_try_at', models.DateTimeField()),
                        ('ended_at', models.DateTimeField(blank=True, null=True)),
                        ('block_ids', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, default=list, size=None)),
                    ],
                    options={
                        'verbose_name': 'allocation request',
                        'verbose_name_plural': 'allocation requests',
                        'ordering': ['id'],
                    },
                ),
                migrations.CreateModel(
                    name='AuditLayout',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('columns', models.JSONField()),
                    ],
                ),
                migrations.CreateModel(
                    name='CIDRMigration',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('first', pools.models.fields.HostAddressField(max_length=39)),
                        ('last', pools.models.fields.HostAddressField(max_length=39)),
                        ('to', netfields.fields.CidrAddressField(blank=True, max_length=43, null=True)),
                        ('in_use', models.BigIntegerField()),
                        ('range_ids', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, default=list, size=None)),
                        ('reason', models.CharField(blank=True, default='', max_length=500)),
                        ('started_by', models.CharField(max_length=150)),
                        ('started_at', models.DateTimeField()),
                        ('ended_at', models.DateTimeField(blank=True, null=True)),
                        ('outcome', models.CharField(blank=True, choices=[('removed', 'removed'), ('kept', 'kept'), ('aborted', 'aborted')], default='', max_length=7)),
                    ],
                    options={
                        'verbose_name': 'CIDR migration',
                        'verbose_name_plural': 'CIDR migrations',
                        'ordering': ['-id'],
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='ClusterEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('name', models.CharField(max_length=253)),
                        ('cluster_prefix', netfields.fields.CidrAddressField(blank=True, help_text='IPv6, at least /64; divided into node and instance prefixes.', max_length=43, null=True)),
                        ('instance_gateway', pools.models.fields.HostAddressField(default='fe80::1', max_length=39)),
                        ('instance_mtu', models.PositiveIntegerField(default=1420)),
                        ('instance_dns', django.contrib.postgres.fields.ArrayField(base_field=pools.models.fields.HostAddressField(max_length=39), blank=True, default=list, size=None)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('webhook_key_made_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='Connection',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('server', models.CharField(max_length=500)),
                        ('sealed', models.TextField(editable=False)),
                        ('in_cluster', models.BooleanField(default=False)),
                        ('mode', models.CharField(choices=[('observed', 'observed'), ('managed', 'managed')], default='observed', max_length=8)),
                        ('managed_resources', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('pools', 'CiliumPodIPPools'), ('pod-cidrs', 'PodCIDRs of CiliumNodes'), ('claims', 'status of IPAMClaims'), ('ippool-status', 'status of IPPools'), ('cluster-api', 'addresses for claims of Cluster API'), ('conversion', 'v2 objects for pools of a separate v2alpha1 store')], max_length=16), blank=True, default=list, size=None)),
                        ('paused', models.BooleanField(default=False)),
                        ('identity', models.CharField(blank=True, default='', editable=False, max_length=64)),
                        ('version', models.CharField(blank=True, default='', editable=False, max_length=64)),
                        ('expires_at', models.DateTimeField(editable=False, null=True)),
                        ('tried_at', models.DateTimeField(editable=False, null=True)),
                        ('succeeded_at', models.DateTimeField(editable=False, null=True)),
                        ('error_code', models.CharField(blank=True, default='', editable=False, max_length=63)),
                        ('error', models.CharField(blank=True, default='', editable=False, max_length=500)),
                        ('failures', models.PositiveIntegerField(default=0, editable=False)),
                        ('failed_objects', models.PositiveIntegerField(db_default=0, default=0, editable=False)),
                        ('served', models.JSONField(editable=False, null=True)),
                        ('due_at', models.DateTimeField(editable=False)),
                        ('nudged_at', models.DateTimeField(editable=False, null=True)),
                        ('leased_by', models.CharField(blank=True, default='', editable=False, max_length=200)),
                        ('leased_until', models.DateTimeField(editable=False, null=True)),
                        ('fence', models.BigIntegerField(default=0, editable=False)),
                        ('watched_by', models.CharField(blank=True, default='', editable=False, max_length=200)),
                        ('positions', models.JSONField(default=dict, editable=False)),
                    ],
                    options={
                        'verbose_name': 'connection',
                        'verbose_name_plural': 'connections',
                        'ordering': ['cluster__name'],
                        'permissions': [('reconcile', 'Can start a sync run of a cluster')],
                    },
                ),
                migrations.CreateModel(
                    name='ConnectionEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('server', models.CharField(max_length=500)),
                        ('mode', models.CharField(choices=[('observed', 'observed'), ('managed', 'managed')], default='observed', max_length=8)),
                        ('managed_resources', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(choices=[('pools', 'CiliumPodIPPools'), ('pod-cidrs', 'PodCIDRs of CiliumNodes'), ('claims', 'status of IPAMClaims'), ('ippool-status', 'status of IPPools'), ('cluster-api', 'addresses for claims of Cluster API'), ('conversion', 'v2 objects for pools of a separate v2alpha1 store')], max_length=16), blank=True, default=list, size=None)),
                        ('paused', models.BooleanField(default=False)),
                        ('in_cluster', models.BooleanField(default=False)),
                        ('identity', models.CharField(blank=True, default='', editable=False, max_length=64)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='Container',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('name', models.CharField(blank=True, default='', max_length=253)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('version', models.PositiveBigIntegerField(default=1, editable=False)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'verbose_name': 'network container',
                        'verbose_name_plural': 'network containers',
                        'ordering': ['cidr', 'id'],
                    },
                ),
                migrations.CreateModel(
                    name='ContainerEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('name', models.CharField(blank=True, default='', max_length=253)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='CountedUntil',
                    fields=[
                        ('log', models.CharField(max_length=63, primary_key=True, serialize=False)),
                        ('counted', models.BigIntegerField(default=0)),
                        ('assigned', models.BigIntegerField(default=0)),
                        ('waits_for', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=40), default=list, size=None)),
                    ],
                ),
                migrations.CreateModel(
                    name='CustomField',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=50)),
                        ('label', models.CharField(max_length=100)),
                        ('type', models.CharField(choices=[('text', 'text'), ('number', 'number'), ('choice', 'choice'), ('link', 'link')], max_length=6)),
                        ('choices', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), blank=True, default=list, size=None)),
                        ('object_types', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), size=None)),
                        ('required', models.BooleanField(default=False)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'verbose_name': 'custom field',
                        'verbose_name_plural': 'custom fields',
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='CustomFieldEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('name', models.CharField(max_length=50)),
                        ('label', models.CharField(max_length=100)),
                        ('type', models.CharField(choices=[('text', 'text'), ('number', 'number'), ('choice', 'choice'), ('link', 'link')], max_length=6)),
                        ('choices', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), blank=True, default=list, size=None)),
                        ('object_types', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), size=None)),
                        ('required', models.BooleanField(default=False)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='Delivery',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('log_event', models.BigIntegerField(null=True)),
                        ('uid', models.UUIDField(default=uuid.uuid4, unique=True)),
                        ('event', models.CharField(choices=[('opened', 'opened'), ('changed', 'changed'), ('ended', 'ended'), ('test', 'test'), ('digest', 'digest'), ('event', 'event')], max_length=8)),
                        ('body', models.TextField()),
                        ('state', models.CharField(choices=[('pending', 'pending'), ('delivered', 'delivered'), ('failed', 'failed')], default='pending', max_length=9)),
                        ('attempts', models.PositiveIntegerField(default=0)),
                        ('next_try_at', models.DateTimeField()),
                        ('last_status', models.PositiveSmallIntegerField(null=True)),
                        ('last_error', models.CharField(blank=True, default='', max_length=500)),
                        ('created_at', models.DateTimeField()),
                        ('delivered_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'verbose_name_plural': 'deliveries',
                        'ordering': ['-id'],
                    },
                ),
                migrations.CreateModel(
                    name='DirectoryAccount',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('source', models.CharField(choices=[('oidc', 'OpenID Connect'), ('ldap', 'LDAP')], max_length=4, verbose_name='source')),
                        ('subject', models.CharField(max_length=1024)),
                        ('username', models.CharField(max_length=150)),
                        ('roles', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=150), default=list, size=None)),
                        ('refusal', models.CharField(blank=True, default='', max_length=63)),
                        ('refused_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'verbose_name': 'directory account',
                        'verbose_name_plural': 'directory accounts',
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='DirectoryAccountEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('source', models.CharField(choices=[('oidc', 'OpenID Connect'), ('ldap', 'LDAP')], max_length=4, verbose_name='source')),
                        ('username', models.CharField(max_length=150)),
                        ('roles', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=150), default=list, size=None)),
                        ('refusal', models.CharField(blank=True, default='', max_length=63)),
                        ('refused_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='DNSName',
                    fields=[
                        ('block_id', models.BigIntegerField(primary_key=True, serialize=False)),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('holder_kind', models.CharField(max_length=63)),
                        ('holder_id', models.CharField(max_length=253)),
                        ('allocated_at', models.DateTimeField()),
                        ('name', models.CharField(max_length=253)),
                    ],
                    options={
                        'verbose_name': 'DNS name',
                        'verbose_name_plural': 'DNS names',
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='DNSNameEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('block_id', models.BigIntegerField(serialize=False)),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('holder_kind', models.CharField(max_length=63)),
                        ('holder_id', models.CharField(max_length=253)),
                        ('name', models.CharField(max_length=253)),
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
                        ('conflict_code', models.CharField(blank=True, db_default='', default='', max_length=63)),
                        ('ignored_at', models.DateTimeField(blank=True, null=True)),
                        ('ignored_reason', models.CharField(blank=True, default='', max_length=500)),
                    ],
                    options={
                        'verbose_name': 'drifted field',
                        'verbose_name_plural': 'drifted fields',
                        'ordering': ['cluster_id', 'kind', 'namespace', 'name', 'path'],
                    },
                ),
                migrations.CreateModel(
                    name='Environment',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('org', models.CharField(blank=True, default='', max_length=253, verbose_name='organization')),
                        ('env', models.CharField(max_length=253)),
                        ('degraded_since', models.DateTimeField(blank=True, null=True)),
                        ('reason', models.CharField(blank=True, default='', max_length=63)),
                        ('message', models.CharField(blank=True, default='', max_length=500)),
                        ('description', models.CharField(blank=True, db_default='', default='', max_length=500)),
                        ('declared_at', models.DateTimeField(blank=True, null=True)),
                    ],
                    options={
                        'verbose_name': 'environment',
                        'verbose_name_plural': 'environments',
                        'ordering': ['id'],
                    },
                ),
                migrations.CreateModel(
                    name='EnvironmentEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('org', models.CharField(blank=True, default='', max_length=253, verbose_name='organization')),
                        ('env', models.CharField(max_length=253)),
                        ('description', models.CharField(blank=True, db_default='', default='', max_length=500)),
                        ('declared_at', models.DateTimeField(blank=True, null=True)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='FactorEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('owner', models.CharField(max_length=150)),
                        ('kind', models.CharField(max_length=20)),
                        ('name', models.CharField(max_length=100)),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='FailureEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('category', models.CharField(choices=[('pod', 'Pod CIDRs'), ('node', 'Nodes'), ('instance', 'Instances'), ('ipv4', 'Public IPv4'), ('vm', 'VM networks')], max_length=8)),
                        ('holder_kind', models.CharField(max_length=63)),
                        ('holder_id', models.CharField(max_length=253)),
                        ('org', models.CharField(blank=True, default='', max_length=253)),
                        ('env', models.CharField(blank=True, default='', max_length=253)),
                        ('code', models.CharField(max_length=63)),
                        ('message', models.CharField(max_length=500)),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                    ],
                    options={
                        'abstract': False,
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
                        ('message', models.CharField(max_length=1000, verbose_name='message')),
                        ('details', models.JSONField(default=dict)),
                        ('since', models.DateTimeField()),
                    ],
                    options={
                        'verbose_name': 'finding',
                        'verbose_name_plural': 'findings',
                        'ordering': ['-since', '-id'],
                    },
                ),
                migrations.CreateModel(
                    name='FreeSpan',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('first', models.DecimalField(decimal_places=0, max_digits=39)),
                        ('last', models.DecimalField(decimal_places=0, max_digits=39)),
                    ],
                    options={
                        'ordering': ['pool_cidr_id', 'first'],
                    },
                ),
                migrations.CreateModel(
                    name='IdempotencyKey',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('key', models.CharField(max_length=255)),
                        ('fingerprint', models.CharField(max_length=64)),
                        ('status', models.PositiveSmallIntegerField(default=0)),
                        ('answer', models.JSONField(null=True)),
                        ('created_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='Import',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(editable=False, max_length=8)),
                        ('options', models.JSONField(blank=True, default=dict)),
                        ('mapping', models.JSONField(blank=True, default=dict)),
                        ('mirror', models.BooleanField(default=False)),
                        ('limited', models.BooleanField(default=False)),
                        ('format', models.CharField(blank=True, default='', max_length=32)),
                        ('file_name', models.CharField(blank=True, default='', max_length=255)),
                        ('status', models.CharField(choices=[('queued', 'queued'), ('drafting', 'reading'), ('drafted', 'ready for review'), ('committing', 'committing'), ('committed', 'committed'), ('undone', 'undone'), ('cancelled', 'cancelled'), ('failed', 'failed')], default='queued', max_length=10)),
                        ('counts', models.JSONField(blank=True, default=dict)),
                        ('left_out', models.JSONField(blank=True, default=dict)),
                        ('notes', models.JSONField(blank=True, default=list)),
                        ('rows_total', models.PositiveIntegerField(blank=True, null=True)),
                        ('rows_done', models.PositiveIntegerField(default=0)),
                        ('commit_wanted', models.BooleanField(default=False)),
                        ('skip_bad', models.BooleanField(default=False)),
                        ('cancel_wanted', models.BooleanField(default=False)),
                        ('undo_wanted', models.BooleanField(default=False)),
                        ('error_code', models.CharField(blank=True, default='', max_length=63)),
                        ('error', models.CharField(blank=True, default='', max_length=1000)),
                        ('actor', models.CharField(blank=True, default='', max_length=150)),
                        ('source', models.CharField(blank=True, default='', max_length=8)),
                        ('request_id', models.CharField(blank=True, default='', max_length=64)),
                        ('tries', models.PositiveSmallIntegerField(default=0, editable=False)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('started_at', models.DateTimeField(blank=True, null=True)),
                        ('drafted_at', models.DateTimeField(blank=True, null=True)),
                        ('committed_at', models.DateTimeField(blank=True, null=True)),
                        ('undone_at', models.DateTimeField(blank=True, null=True)),
                    ],
                    options={
                        'verbose_name': 'import',
                        'ordering': ['-id'],
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='ImportEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('kind', models.CharField(editable=False, max_length=8)),
                        ('format', models.CharField(blank=True, default='', max_length=32)),
                        ('file_name', models.CharField(blank=True, default='', max_length=255)),
                        ('status', models.CharField(choices=[('queued', 'queued'), ('drafting', 'reading'), ('drafted', 'ready for review'), ('committing', 'committing'), ('committed', 'committed'), ('undone', 'undone'), ('cancelled', 'cancelled'), ('failed', 'failed')], default='queued', max_length=10)),
                        ('counts', models.JSONField(blank=True, default=dict)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='ImportFile',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(blank=True, default='', max_length=255)),
                        ('content', models.BinaryField()),
                    ],
                    options={
                        'ordering': ['id'],
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='JournalEntry',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('object_id', models.PositiveBigIntegerField()),
                        ('kind', models.CharField(choices=[('info', 'info'), ('success', 'success'), ('warning', 'warning'), ('danger', 'danger')], default='info', max_length=7)),
                        ('text', models.TextField()),
                        ('author', models.CharField(max_length=150)),
                        ('created_at', models.DateTimeField()),
                    ],
                    options={
                        'verbose_name': 'journal entry',
                        'verbose_name_plural': 'journal entries',
                        'ordering': ['-id'],
                        'default_permissions': ('delete',),
                    },
                ),
                migrations.CreateModel(
                    name='JournalEntryEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('object_id', models.PositiveBigIntegerField()),
                        ('kind', models.CharField(choices=[('info', 'info'), ('success', 'success'), ('warning', 'warning'), ('danger', 'danger')], default='info', max_length=7)),
                        ('text', models.TextField()),
                        ('author', models.CharField(max_length=150)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='Leak',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('source', models.CharField(max_length=63)),
                        ('holder_kind', models.CharField(max_length=63)),
                        ('holder_id', models.CharField(max_length=253)),
                        ('holder_uid', models.CharField(blank=True, default='', max_length=253)),
                        ('allocated_at', models.DateTimeField()),
                        ('missed_at', models.DateTimeField()),
                        ('observed_at', models.DateTimeField()),
                        ('observations', models.PositiveIntegerField(default=1)),
                        ('confirmed_at', models.DateTimeField(null=True)),
                    ],
                    options={
                        'verbose_name': 'leak',
                        'verbose_name_plural': 'leaks',
                        'ordering': ['missed_at', 'id'],
                        'permissions': [('reclaim', 'Can reclaim leaked blocks')],
                    },
                ),
                migrations.CreateModel(
                    name='ListColumns',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('list', models.CharField(max_length=100)),
                        ('columns', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=100), size=None)),
                    ],
                    options={
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='Preferences',
                    fields=[
                        ('user', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='preferences', serialize=False, to=settings.AUTH_USER_MODEL)),
                        ('time_zone', models.CharField(blank=True, default='', max_length=64)),
                        ('first_steps', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=20), default=list, size=None)),
                    ],
                    options={
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='LoginFailures',
                    fields=[
                        ('key', models.CharField(max_length=64, primary_key=True, serialize=False)),
                        ('failures', models.PositiveIntegerField()),
                        ('since', models.DateTimeField(db_index=True)),
                    ],
                ),
                migrations.CreateModel(
                    name='Measure',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=120)),
                        ('labels', models.TextField(default='{}')),
                        ('value', models.FloatField()),
                    ],
                ),
                migrations.CreateModel(
                    name='NetBoxSource',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=63, unique=True)),
                        ('url', models.CharField(max_length=500)),
                        ('ca', models.TextField(blank=True, default='')),
                        ('sealed', models.TextField(editable=False)),
                        ('mapping', models.JSONField(blank=True, default=dict)),
                        ('holder_kind', models.CharField(default='host', max_length=63)),
                        ('cooldown_seconds', models.BigIntegerField(default=86400)),
                        ('every_minutes', models.PositiveIntegerField(blank=True, null=True)),
                        ('next_run_at', models.DateTimeField(editable=False, null=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'verbose_name': 'NetBox source',
                        'verbose_name_plural': 'NetBox sources',
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='NetBoxSourceEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('name', models.CharField(max_length=63)),
                        ('url', models.CharField(max_length=500)),
                        ('every_minutes', models.PositiveIntegerField(blank=True, null=True)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='ObservedCIDR',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(max_length=63, verbose_name='kind')),
                        ('namespace', models.CharField(blank=True, default='', max_length=253)),
                        ('name', models.CharField(max_length=253, verbose_name='name')),
                        ('uid', models.CharField(max_length=64)),
                        ('role', models.CharField(choices=[('services', 'Services'), ('pods', 'Pod CIDRs'), ('pod-pool', 'Pod pool of another IPAM'), ('node-address', 'Node addresses'), ('load-balancer', 'Load balancer'), ('egress', 'Egress'), ('secondary', 'Secondary network')], max_length=16, verbose_name='role')),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('detail', models.CharField(blank=True, default='', max_length=200, verbose_name='detail')),
                    ],
                    options={
                        'verbose_name': 'observed CIDR',
                        'verbose_name_plural': 'observed CIDRs',
                        'ordering': ['cidr', 'id'],
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
                        ('cidrs', django.contrib.postgres.fields.ArrayField(base_field=netfields.fields.CidrAddressField(max_length=43), editable=False, null=True, size=None)),
                        ('written', models.JSONField(editable=False, null=True)),
                        ('first_seen_at', models.DateTimeField()),
                        ('changed_at', models.DateTimeField()),
                        ('missed_at', models.DateTimeField(blank=True, null=True)),
                    ],
                    options={
                        'verbose_name': 'cluster object',
                        'verbose_name_plural': 'cluster objects',
                        'ordering': ['cluster_id', 'kind', 'namespace', 'name'],
                    },
                ),
                migrations.CreateModel(
                    name='Pool',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('name', models.CharField(max_length=253)),
                        ('category', models.CharField(choices=[('pod', 'Pod CIDRs'), ('node', 'Nodes'), ('instance', 'Instances'), ('ipv4', 'Public IPv4'), ('vm', 'VM networks')], max_length=8)),
                        ('mask_size_v4', models.PositiveSmallIntegerField(blank=True, null=True)),
                        ('mask_size_v6', models.PositiveSmallIntegerField(blank=True, null=True)),
                        ('cooldown_seconds', models.BigIntegerField(default=0)),
                        ('allow_first_ip', models.BooleanField(default=False)),
                        ('allow_last_ip', models.BooleanField(default=False)),
                        ('annotations', models.JSONField(blank=True, default=dict)),
                        ('labels', models.JSONField(blank=True, default=dict)),
                        ('pod_selector', models.JSONField(blank=True, null=True)),
                        ('namespace_selector', models.JSONField(blank=True, null=True)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('dns_pattern', models.CharField(blank=True, db_default='', default='', max_length=253)),
                        ('version', models.PositiveBigIntegerField(default=1, editable=False)),
                        ('orphaned_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('follows_cluster', models.BooleanField(db_default=False, default=False, editable=False)),
                        ('agreed', models.CharField(blank=True, db_default='', default='', editable=False, max_length=160)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'verbose_name': 'pool',
                        'verbose_name_plural': 'pools',
                        'ordering': ['cluster__name', 'name'],
                        'permissions': [('allocate', 'Can allocate and release blocks'), ('force_release', 'Can release for another holder and skip a cooldown')],
                    },
                ),
                migrations.CreateModel(
                    name='PoolCIDR',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('position', models.PositiveIntegerField(default=0)),
                        ('orphaned_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('pending', models.CharField(blank=True, choices=[('addition', 'addition'), ('removal', 'removal')], db_default='', default='', editable=False, max_length=8)),
                        ('next_index', models.DecimalField(db_default=0, decimal_places=0, default=0, editable=False, max_digits=39)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'verbose_name': 'CIDR',
                        'verbose_name_plural': 'CIDRs',
                        'ordering': ['pool_id', 'position', 'id'],
                    },
                ),
                migrations.CreateModel(
                    name='PoolCIDREvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('position', models.PositiveIntegerField(default=0)),
                        ('orphaned_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('pending', models.CharField(blank=True, choices=[('addition', 'addition'), ('removal', 'removal')], db_default='', default='', editable=False, max_length=8)),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='PoolEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('name', models.CharField(max_length=253)),
                        ('category', models.CharField(choices=[('pod', 'Pod CIDRs'), ('node', 'Nodes'), ('instance', 'Instances'), ('ipv4', 'Public IPv4'), ('vm', 'VM networks')], max_length=8)),
                        ('mask_size_v4', models.PositiveSmallIntegerField(blank=True, null=True)),
                        ('mask_size_v6', models.PositiveSmallIntegerField(blank=True, null=True)),
                        ('cooldown_seconds', models.BigIntegerField(default=0)),
                        ('allow_first_ip', models.BooleanField(default=False)),
                        ('allow_last_ip', models.BooleanField(default=False)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('orphaned_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('dns_pattern', models.CharField(blank=True, db_default='', default='', max_length=253)),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='PoolForecast',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('family', models.PositiveSmallIntegerField()),
                        ('state', models.CharField(choices=[('full', 'full'), ('too_little_history', 'too_little_history'), ('not_growing', 'not_growing'), ('distant', 'distant'), ('growing', 'growing')], max_length=20)),
                        ('history', models.PositiveIntegerField()),
                        ('per_day', models.FloatField(default=0)),
                        ('day', models.DateField(blank=True, null=True)),
                        ('earliest', models.DateField(blank=True, null=True)),
                        ('latest', models.DateField(blank=True, null=True)),
                        ('made_at', models.DateTimeField()),
                    ],
                    options={
                        'ordering': ['pool_id', 'family'],
                    },
                ),
                migrations.CreateModel(
                    name='PoolUsage',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('family', models.PositiveSmallIntegerField()),
                        ('held', models.BigIntegerField()),
                        ('cooling', models.BigIntegerField()),
                        ('withheld', models.BigIntegerField()),
                        ('counted_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='Recovery',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('since', models.DateTimeField()),
                        ('after_run', models.BigIntegerField()),
                        ('reason', models.CharField(max_length=500)),
                        ('actor', models.CharField(blank=True, default='', max_length=150)),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('ended_by', models.CharField(blank=True, default='', max_length=150)),
                    ],
                    options={
                        'verbose_name_plural': 'recoveries',
                        'ordering': ['-id'],
                        'permissions': [('recover', 'Can begin and end recovery mode')],
                    },
                ),
                migrations.CreateModel(
                    name='Reference',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('holder_id', models.CharField(max_length=253)),
                        ('holder_uid', models.CharField(blank=True, default='', max_length=253)),
                        ('org', models.CharField(blank=True, default='', max_length=253)),
                    ],
                ),
                migrations.CreateModel(
                    name='ReferenceFeed',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('holder_kind', models.CharField(max_length=63)),
                        ('sequence', models.BigIntegerField()),
                        ('fingerprint', models.CharField(max_length=64)),
                        ('reporter', models.CharField(blank=True, default='', max_length=150)),
                        ('reported_at', models.DateTimeField()),
                        ('complete_at', models.DateTimeField(null=True)),
                        ('answer', models.JSONField(default=dict)),
                    ],
                    options={
                        'ordering': ['cluster_id', 'holder_kind'],
                        'permissions': [('report_references', 'Can report references to blocks')],
                    },
                ),
                migrations.CreateModel(
                    name='RegisterRecord',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('target', models.CharField(choices=[('container', 'network container'), ('pool', 'pool'), ('address', 'held address'), ('reserved', 'reserved range')], max_length=9)),
                        ('first', pools.models.fields.HostAddressField(max_length=39)),
                        ('last', pools.models.fields.HostAddressField(max_length=39)),
                        ('holder_id', models.CharField(blank=True, default='', max_length=253)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('details', models.JSONField(default=dict)),
                        ('register_import_id', models.BigIntegerField()),
                        ('source_id', models.BigIntegerField(null=True)),
                        ('external_id', models.BigIntegerField(null=True)),
                    ],
                    options={
                        'ordering': ['id'],
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='ReservedRange',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('first', pools.models.fields.HostAddressField(max_length=39)),
                        ('last', pools.models.fields.HostAddressField(max_length=39)),
                        ('reason', models.CharField(blank=True, default='', max_length=500)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'verbose_name': 'reserved range',
                        'verbose_name_plural': 'reserved ranges',
                        'ordering': ['pool_cidr_id', 'first'],
                    },
                ),
                migrations.CreateModel(
                    name='ReservedRangeEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('first', pools.models.fields.HostAddressField(max_length=39)),
                        ('last', pools.models.fields.HostAddressField(max_length=39)),
                        ('reason', models.CharField(blank=True, default='', max_length=500)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='Sample',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('day', models.DateField()),
                        ('pool_id', models.BigIntegerField()),
                        ('cluster', models.CharField(max_length=63)),
                        ('pool', models.CharField(max_length=253)),
                        ('category', models.CharField(choices=[('pod', 'Pod CIDRs'), ('node', 'Nodes'), ('instance', 'Instances'), ('ipv4', 'Public IPv4'), ('vm', 'VM networks')], max_length=8)),
                        ('family', models.PositiveSmallIntegerField()),
                        ('capacity', models.DecimalField(decimal_places=0, max_digits=39)),
                        ('held', models.BigIntegerField()),
                        ('cooling', models.BigIntegerField()),
                        ('reserved', models.DecimalField(decimal_places=0, max_digits=39)),
                        ('taken_at', models.DateTimeField()),
                    ],
                    options={
                        'ordering': ['day', 'pool_id', 'family'],
                    },
                ),
                migrations.CreateModel(
                    name='SampleSum',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('day', models.DateField()),
                        ('by', models.CharField(choices=[('category', 'Category'), ('cluster', 'Cluster'), ('org', 'Organization'), ('env', 'Environment')], max_length=8)),
                        ('org', models.CharField(blank=True, default='', max_length=253)),
                        ('name', models.CharField(blank=True, default='', max_length=253)),
                        ('rest', models.BooleanField(default=False)),
                        ('family', models.PositiveSmallIntegerField()),
                        ('members', models.BigIntegerField()),
                        ('capacity', models.DecimalField(decimal_places=0, default=0, max_digits=48)),
                        ('held', models.BigIntegerField()),
                        ('cooling', models.BigIntegerField()),
                        ('reserved', models.DecimalField(decimal_places=0, default=0, max_digits=48)),
                        ('taken_at', models.DateTimeField()),
                    ],
                    options={
                        'ordering': ['day', 'by', 'org', 'name', 'family'],
                    },
                ),
                migrations.CreateModel(
                    name='SavedFilter',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('list', models.CharField(max_length=100)),
                        ('name', models.CharField(max_length=80)),
                        ('query', models.CharField(blank=True, default='', max_length=2000)),
                        ('shared', models.BooleanField(default=False)),
                    ],
                    options={
                        'verbose_name': 'saved filter',
                        'verbose_name_plural': 'saved filters',
                        'default_permissions': ('change',),
                    },
                ),
                migrations.CreateModel(
                    name='SyncRun',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('trigger', models.CharField(choices=[('schedule', 'schedule'), ('watch', 'watch'), ('change', 'change'), ('dry-run', 'dry run')], max_length=8, verbose_name='trigger')),
                        ('started_at', models.DateTimeField()),
                        ('ended_at', models.DateTimeField(blank=True, null=True)),
                        ('succeeded', models.BooleanField(default=False)),
                        ('kinds', models.JSONField(default=dict)),
                        ('error_code', models.CharField(blank=True, default='', max_length=63)),
                        ('error', models.CharField(blank=True, default='', max_length=500)),
                    ],
                    options={
                        'verbose_name': 'sync run',
                        'verbose_name_plural': 'sync runs',
                        'ordering': ['-id'],
                    },
                ),
                migrations.CreateModel(
                    name='TokenEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('owner', models.CharField(max_length=150)),
                        ('expiry', models.DateTimeField(null=True)),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='TokenScope',
                    fields=[
                        ('token', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='scope', serialize=False, to=settings.KNOX_TOKEN_MODEL)),
                        ('description', models.CharField(blank=True, max_length=200)),
                        ('level', models.CharField(choices=[('read', 'read'), ('allocate', 'allocate and release'), ('administer', 'everything that its owner may')], default='administer', max_length=10)),
                    ],
                ),
                migrations.CreateModel(
                    name='TokenUse',
                    fields=[
                        ('token', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='use', serialize=False, to=settings.KNOX_TOKEN_MODEL)),
                        ('used_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='Watcher',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=200, unique=True)),
                        ('seen_at', models.DateTimeField()),
                    ],
                ),
                migrations.CreateModel(
                    name='WebhookTarget',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=100, unique=True)),
                        ('url', models.CharField(max_length=500)),
                        ('host', models.CharField(db_default='', default='', editable=False, max_length=500)),
                        ('ca', models.TextField(blank=True, default='')),
                        ('sealed', models.TextField(editable=False)),
                        ('codes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=63), blank=True, default=list, size=None)),
                        ('enabled', models.BooleanField(default=True)),
                        ('alerts', models.BooleanField(db_default=True, default=True)),
                        ('least_level', models.CharField(choices=[('error', 'error'), ('warning', 'warning'), ('info', 'info')], db_default='warning', default='warning', max_length=7)),
                        ('digest', models.BooleanField(db_default=False, default=False)),
                        ('digest_on', models.DateField(editable=False, null=True)),
                        ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                        ('event_types', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=63), blank=True, db_default=[], default=list, size=None)),
                        ('clusters', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, db_default=[], default=list, size=None)),
                        ('event_pools', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, db_default=[], default=list, size=None)),
                        ('event_position', models.BigIntegerField(db_default=0, default=0, editable=False)),
                        ('created_at', models.DateTimeField()),
                        ('secret_made_at', models.DateTimeField()),
                        ('failures', models.PositiveIntegerField(default=0, editable=False)),
                        ('accepted_at', models.DateTimeField(editable=False, null=True)),
                        ('switched_off_at', models.DateTimeField(editable=False, null=True)),
                        ('wait_until', models.DateTimeField(editable=False, null=True)),
                    ],
                    options={
                        'verbose_name': 'webhook target',
                        'verbose_name_plural': 'webhook targets',
                        'ordering': ['name'],
                    },
                ),
                migrations.CreateModel(
                    name='WebhookTargetEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('name', models.CharField(max_length=100)),
                        ('host', models.CharField(db_default='', default='', editable=False, max_length=500)),
                        ('codes', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=63), blank=True, default=list, size=None)),
                        ('enabled', models.BooleanField(default=True)),
                        ('alerts', models.BooleanField(db_default=True, default=True)),
                        ('least_level', models.CharField(choices=[('error', 'error'), ('warning', 'warning'), ('info', 'info')], db_default='warning', default='warning', max_length=7)),
                        ('digest', models.BooleanField(db_default=False, default=False)),
                        ('event_types', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=63), blank=True, db_default=[], default=list, size=None)),
                        ('clusters', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, db_default=[], default=list, size=None)),
                        ('event_pools', django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), blank=True, db_default=[], default=list, size=None)),
                        ('secret_made_at', models.DateTimeField()),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='Window',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('family', models.PositiveSmallIntegerField()),
                        ('since', models.DateTimeField()),
                        ('all_drawn', models.BooleanField(null=True)),
                        ('only_family', models.BooleanField(null=True)),
                        ('space_id', models.BigIntegerField(null=True)),
                        ('category', models.CharField(max_length=8, null=True)),
                        ('cluster_id', models.BigIntegerField(null=True)),
                        ('pool_name', models.CharField(max_length=253, null=True)),
                        ('cluster_name', models.CharField(max_length=253, null=True)),
                    ],
                ),
                migrations.CreateModel(
                    name='TokenOwner',
                    fields=[
                    ],
                    options={
                        'verbose_name': 'API token',
                        'proxy': True,
                        'indexes': [],
                        'constraints': [],
                    },
                    bases=('auth.user',),
                    managers=[
                        ('objects', django.contrib.auth.models.UserManager()),
                    ],
                ),
                migrations.CreateModel(
                    name='FactorOwner',
                    fields=[
                    ],
                    options={
                        'verbose_name': 'second factor',
                        'proxy': True,
                        'indexes': [],
                        'constraints': [],
                    },
                    bases=('auth.user',),
                    managers=[
                        ('objects', django.contrib.auth.models.UserManager()),
                    ],
                ),
                migrations.CreateModel(
                    name='Alert',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('code', models.CharField(max_length=63)),
                        ('subject', models.CharField(max_length=500)),
                        ('level', models.CharField(choices=[('error', 'error'), ('warning', 'warning'), ('info', 'info')], max_length=7)),
                        ('title', models.CharField(max_length=300)),
                        ('detail', models.CharField(blank=True, default='', max_length=1000)),
                        ('url', models.CharField(blank=True, default='', max_length=500)),
                        ('cause', models.CharField(blank=True, default='', max_length=500)),
                        ('since', models.DateTimeField()),
                        ('seen_at', models.DateTimeField()),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('acknowledged_at', models.DateTimeField(null=True)),
                        ('acknowledged_by', models.CharField(blank=True, db_default='', default='', max_length=150)),
                        ('acknowledged_until', models.DateTimeField(null=True)),
                        ('acknowledged_reason', models.CharField(blank=True, db_default='', default='', max_length=500)),
                    ],
                    options={
                        'ordering': ['-id'],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('code', 'subject'), name='alert_open_once')],
                    },
                ),
                migrations.CreateModel(
                    name='AuditSegment',
                    fields=[
                        ('id', models.BigIntegerField(primary_key=True, serialize=False)),
                        ('after_id', models.BigIntegerField(unique=True)),
                        ('last_id', models.BigIntegerField(unique=True)),
                        ('count', models.PositiveIntegerField()),
                        ('oldest_at', models.DateTimeField()),
                        ('newest_at', models.DateTimeField()),
                        ('marks', models.BinaryField()),
                        ('digest', models.CharField(max_length=64)),
                        ('purged_at', models.DateTimeField(null=True)),
                        ('retained', models.PositiveIntegerField(null=True)),
                        ('layout', models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='pools.auditlayout')),
                    ],
                    options={
                        'ordering': ['id'],
                    },
                ),
                migrations.CreateModel(
                    name='Block',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('category', models.CharField(choices=[('pod', 'Pod CIDRs'), ('node', 'Nodes'), ('instance', 'Instances'), ('ipv4', 'Public IPv4'), ('vm', 'VM networks')], max_length=8)),
                        ('family', models.PositiveSmallIntegerField(choices=[(4, 'IPv4'), (6, 'IPv6')])),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('state', models.CharField(choices=[('available', 'available'), ('held', 'allocated'), ('cooling', 'in cooldown')], max_length=9)),
                        ('withheld', models.BooleanField(default=False)),
                        ('holder_kind', models.CharField(blank=True, default='', max_length=63)),
                        ('holder_id', models.CharField(blank=True, default='', max_length=253)),
                        ('holder_uid', models.CharField(blank=True, default='', max_length=253)),
                        ('org', models.CharField(blank=True, default='', max_length=253, verbose_name='organization')),
                        ('env', models.CharField(blank=True, default='', max_length=253, verbose_name='environment')),
                        ('allocated_at', models.DateTimeField(blank=True, null=True)),
                        ('released_at', models.DateTimeField(blank=True, null=True)),
                        ('available_from', models.DateTimeField(blank=True, null=True)),
                        ('space', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='+', to='pools.addressspace')),
                    ],
                    options={
                        'verbose_name': 'block',
                        'verbose_name_plural': 'blocks',
                        'ordering': ['id'],
                    },
                ),
                migrations.CreateModel(
                    name='BlockEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('category', models.CharField(choices=[('pod', 'Pod CIDRs'), ('node', 'Nodes'), ('instance', 'Instances'), ('ipv4', 'Public IPv4'), ('vm', 'VM networks')], max_length=8)),
                        ('family', models.PositiveSmallIntegerField(choices=[(4, 'IPv4'), (6, 'IPv6')])),
                        ('cidr', netfields.fields.CidrAddressField(max_length=43)),
                        ('state', models.CharField(choices=[('available', 'available'), ('held', 'allocated'), ('cooling', 'in cooldown')], max_length=9)),
                        ('withheld', models.BooleanField(default=False)),
                        ('holder_kind', models.CharField(blank=True, default='', max_length=63)),
                        ('holder_id', models.CharField(blank=True, default='', max_length=253)),
                        ('holder_uid', models.CharField(blank=True, default='', max_length=253)),
                        ('org', models.CharField(blank=True, default='', max_length=253, verbose_name='organization')),
                        ('env', models.CharField(blank=True, default='', max_length=253, verbose_name='environment')),
                        ('allocated_at', models.DateTimeField(blank=True, null=True)),
                        ('released_at', models.DateTimeField(blank=True, null=True)),
                        ('available_from', models.DateTimeField(blank=True, null=True)),
                        ('pgh_obj', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.block')),
                        ('space', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.addressspace')),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='BrowserSession',
                    fields=[
                        ('session_key', models.CharField(max_length=40, primary_key=True, serialize=False, verbose_name='session key')),
                        ('session_data', models.TextField(verbose_name='session data')),
                        ('expire_date', models.DateTimeField(db_index=True, verbose_name='expire date')),
                        ('user', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'verbose_name': 'session',
                        'verbose_name_plural': 'sessions',
                        'abstract': False,
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='Cluster',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('name', models.CharField(max_length=253, unique=True)),
                        ('cluster_prefix', netfields.fields.CidrAddressField(blank=True, help_text='IPv6, at least /64; divided into node and instance prefixes.', max_length=43, null=True)),
                        ('instance_gateway', pools.models.fields.HostAddressField(default='fe80::1', max_length=39)),
                        ('instance_mtu', models.PositiveIntegerField(default=1420)),
                        ('instance_dns', django.contrib.postgres.fields.ArrayField(base_field=pools.models.fields.HostAddressField(max_length=39), blank=True, default=list, size=None)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('version', models.PositiveBigIntegerField(default=1, editable=False)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('webhook_digest', models.CharField(blank=True, default='', editable=False, max_length=64)),
                        ('webhook_key_made_at', models.DateTimeField(blank=True, editable=False, null=True)),
                    ],
                    options={
                        'verbose_name': 'cluster',
                        'verbose_name_plural': 'clusters',
                        'ordering': ['name'],
                        'indexes': [django.contrib.postgres.indexes.GinIndex(fields=['tags'], name='cluster_tags'), django.contrib.postgres.indexes.GinIndex(fields=['custom_fields'], name='cluster_custom_fields'), models.Index(condition=models.Q(('owner', ''), _negated=True), fields=['owner'], name='cluster_owner')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('webhook_digest', ''), _negated=True), fields=('webhook_digest',), name='webhook_digest_unique')],
                    },
                ),
                migrations.AddField(
                    model_name='addressspace',
                    name='cluster',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='spaces', to='pools.cluster'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='cluster',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_clusterevent" ("cluster_prefix", "custom_fields", "description", "instance_dns", "instance_gateway", "instance_mtu", "name", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "tags", "webhook_key_made_at") VALUES (NEW."cluster_prefix", NEW."custom_fields", NEW."description", NEW."instance_dns", NEW."instance_gateway", NEW."instance_mtu", NEW."name", NEW."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."tags", NEW."webhook_key_made_at"); RETURN NULL;', hash='db9241d99958477f1027b81ed0f56245bd38600f', operation='INSERT', pgid='pgtrigger_created_insert_8be31', table='pools_cluster', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='cluster',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."cluster_prefix" IS DISTINCT FROM (NEW."cluster_prefix") OR OLD."custom_fields" IS DISTINCT FROM (NEW."custom_fields") OR OLD."description" IS DISTINCT FROM (NEW."description") OR OLD."instance_dns" IS DISTINCT FROM (NEW."instance_dns") OR OLD."instance_gateway" IS DISTINCT FROM (NEW."instance_gateway") OR OLD."instance_mtu" IS DISTINCT FROM (NEW."instance_mtu") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."owner" IS DISTINCT FROM (NEW."owner") OR OLD."tags" IS DISTINCT FROM (NEW."tags") OR OLD."webhook_key_made_at" IS DISTINCT FROM (NEW."webhook_key_made_at"))', func='INSERT INTO "pools_clusterevent" ("cluster_prefix", "custom_fields", "description", "instance_dns", "instance_gateway", "instance_mtu", "name", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "tags", "webhook_key_made_at") VALUES (NEW."cluster_prefix", NEW."custom_fields", NEW."description", NEW."instance_dns", NEW."instance_gateway", NEW."instance_mtu", NEW."name", NEW."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."tags", NEW."webhook_key_made_at"); RETURN NULL;', hash='8cd4903c423006430451eece6f6035225b157900', operation='UPDATE', pgid='pgtrigger_changed_update_e0029', table='pools_cluster', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='cluster',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_clusterevent" ("cluster_prefix", "custom_fields", "description", "instance_dns", "instance_gateway", "instance_mtu", "name", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "tags", "webhook_key_made_at") VALUES (OLD."cluster_prefix", OLD."custom_fields", OLD."description", OLD."instance_dns", OLD."instance_gateway", OLD."instance_mtu", OLD."name", OLD."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."tags", OLD."webhook_key_made_at"); RETURN NULL;', hash='7e1fd01fab8125b897cecea16d06951460da4536', operation='DELETE', pgid='pgtrigger_deleted_delete_8aee8', table='pools_cluster', when='AFTER')),
                ),
                migrations.AddField(
                    model_name='clusterevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.cluster'),
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
                    model_name='container',
                    name='space',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='containers', to='pools.addressspace'),
                ),
                migrations.AddField(
                    model_name='containerevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.container'),
                ),
                migrations.AddField(
                    model_name='containerevent',
                    name='space',
                    field=models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.addressspace'),
                ),
                migrations.AddConstraint(
                    model_name='customfield',
                    constraint=models.UniqueConstraint(fields=('name',), name='custom_field_name_unique', violation_error_code='already_exists', violation_error_message='There is a custom field with this name.'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='customfield',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_customfieldevent" ("choices", "description", "label", "name", "object_types", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "required", "type") VALUES (NEW."choices", NEW."description", NEW."label", NEW."name", NEW."object_types", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."required", NEW."type"); RETURN NULL;', hash='131208db994a0a602693f4c86e5bfbd9dc690c40', operation='INSERT', pgid='pgtrigger_created_insert_6a5b0', table='pools_customfield', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='customfield',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."choices" IS DISTINCT FROM (NEW."choices") OR OLD."description" IS DISTINCT FROM (NEW."description") OR OLD."label" IS DISTINCT FROM (NEW."label") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."object_types" IS DISTINCT FROM (NEW."object_types") OR OLD."required" IS DISTINCT FROM (NEW."required") OR OLD."type" IS DISTINCT FROM (NEW."type"))', func='INSERT INTO "pools_customfieldevent" ("choices", "description", "label", "name", "object_types", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "required", "type") VALUES (NEW."choices", NEW."description", NEW."label", NEW."name", NEW."object_types", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."required", NEW."type"); RETURN NULL;', hash='2adff2f373961d0b85e8d996a0a0afe8e4cf1d3b', operation='UPDATE', pgid='pgtrigger_changed_update_ac211', table='pools_customfield', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='customfield',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_customfieldevent" ("choices", "description", "label", "name", "object_types", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "required", "type") VALUES (OLD."choices", OLD."description", OLD."label", OLD."name", OLD."object_types", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."required", OLD."type"); RETURN NULL;', hash='759d17c49c566c3eb2d8bce0da0191a33bace2f1', operation='DELETE', pgid='pgtrigger_deleted_delete_3886d', table='pools_customfield', when='AFTER')),
                ),
                migrations.AddField(
                    model_name='customfieldevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.customfield'),
                ),
                migrations.AddField(
                    model_name='delivery',
                    name='alert',
                    field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='pools.alert'),
                ),
                migrations.AddField(
                    model_name='directoryaccount',
                    name='user',
                    field=models.OneToOneField(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='directory_account', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='directoryaccountevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.directoryaccount'),
                ),
                migrations.AddField(
                    model_name='directoryaccountevent',
                    name='user',
                    field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='dnsnameevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.dnsname'),
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
                    model_name='environment',
                    name='cluster',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='environments', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='environmentevent',
                    name='cluster',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='environmentevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.environment'),
                ),
                migrations.AddField(
                    model_name='finding',
                    name='cluster',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='findings', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='idempotencykey',
                    name='user',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='import',
                    name='cluster',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='imports', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='import',
                    name='user',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.CreateModel(
                    name='ImportRow',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('number', models.PositiveIntegerField()),
                        ('file', models.CharField(blank=True, default='', max_length=255)),
                        ('line', models.PositiveIntegerField()),
                        ('texts', models.JSONField(default=dict)),
                        ('values', models.JSONField(default=dict)),
                        ('problems', models.JSONField(default=list)),
                        ('verdict', models.CharField(blank=True, default='', max_length=9)),
                        ('status', models.CharField(choices=[('new', 'new'), ('changed', 'changed'), ('unchanged', 'unchanged'), ('conflict', 'conflict'), ('invalid', 'invalid'), ('left_out', 'left out'), ('vanished', 'gone from the source'), ('released', 'released')], db_default='new', default='new', max_length=9)),
                        ('reasons', models.JSONField(db_default=[], default=list)),
                        ('object_id', models.BigIntegerField(null=True)),
                        ('before', models.JSONField(null=True)),
                        ('skipped', models.BooleanField(default=False)),
                        ('corrected', models.BooleanField(default=False)),
                        ('written', models.BooleanField(db_default=False, default=False)),
                        ('source_import', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pools.import')),
                    ],
                    options={
                        'verbose_name': 'row of an import',
                        'ordering': ['source_import_id', 'number'],
                        'default_permissions': (),
                        'indexes': [models.Index(fields=['source_import', 'status', 'number'], name='import_row_status')],
                        'constraints': [models.UniqueConstraint(fields=('source_import', 'number'), name='import_row_number')],
                    },
                ),
                migrations.CreateModel(
                    name='RegisterRow',
                    fields=[
                    ],
                    options={
                        'proxy': True,
                        'default_permissions': (),
                        'indexes': [],
                        'constraints': [],
                    },
                    bases=('pools.importrow',),
                ),
                migrations.CreateModel(
                    name='Silence',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('code', models.CharField(blank=True, default='', max_length=63)),
                        ('cluster', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='silences', to='pools.cluster')),
                        ('until', models.DateTimeField()),
                        ('reason', models.CharField(max_length=500)),
                        ('made_by', models.CharField(max_length=150)),
                        ('created_at', models.DateTimeField()),
                    ],
                    options={
                        'verbose_name': 'silence',
                        'verbose_name_plural': 'silences',
                        'ordering': ['until', 'id'],
                        'constraints': [models.CheckConstraint(condition=models.Q(models.Q(('code', ''), _negated=True), ('cluster__isnull', False), _connector='OR'), name='silence_not_of_all')],
                    },
                ),
                migrations.CreateModel(
                    name='RegisterImport',
                    fields=[
                    ],
                    options={
                        'verbose_name': 'register import',
                        'verbose_name_plural': 'register imports',
                        'proxy': True,
                        'default_permissions': ('add', 'change', 'view'),
                        'indexes': [],
                        'constraints': [],
                    },
                    bases=('pools.import',),
                ),
                migrations.AddField(
                    model_name='importevent',
                    name='cluster',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='importevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.import'),
                ),
                migrations.AddField(
                    model_name='importfile',
                    name='source_import',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='files', to='pools.import'),
                ),
                migrations.AddField(
                    model_name='journalentry',
                    name='cluster',
                    field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='journalentry',
                    name='content_type',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='contenttypes.contenttype'),
                ),
                migrations.AddField(
                    model_name='journalentry',
                    name='user',
                    field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='journalentryevent',
                    name='cluster',
                    field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='journalentryevent',
                    name='content_type',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='contenttypes.contenttype'),
                ),
                migrations.AddField(
                    model_name='journalentryevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.journalentry'),
                ),
                migrations.AddField(
                    model_name='leak',
                    name='block',
                    field=models.OneToOneField(db_constraint=False, on_delete=django.db.models.deletion.CASCADE, related_name='leak', to='pools.block'),
                ),
                migrations.AddField(
                    model_name='leak',
                    name='cluster',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='leaks', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='listcolumns',
                    name='user',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddConstraint(
                    model_name='measure',
                    constraint=models.UniqueConstraint(fields=('name', 'labels'), name='measure_unique'),
                ),
                migrations.AddField(
                    model_name='netboxsource',
                    name='cluster',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='netbox_sources', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='import',
                    name='netbox_source',
                    field=models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='imports', to='pools.netboxsource'),
                ),
                migrations.AddField(
                    model_name='netboxsourceevent',
                    name='cluster',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='netboxsourceevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.netboxsource'),
                ),
                migrations.AddField(
                    model_name='observedcidr',
                    name='space',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='observed_cidrs', to='pools.addressspace'),
                ),
                migrations.AddField(
                    model_name='observedobject',
                    name='cluster',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='objects_seen', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='pool',
                    name='cluster',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='pools', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='pool',
                    name='space',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='pools', to='pools.addressspace'),
                ),
                migrations.AddField(
                    model_name='failureevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='environment',
                    name='refusing_pool',
                    field=models.ForeignKey(blank=True, db_index=False, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='dnsnameevent',
                    name='pool',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='dnsname',
                    name='pool',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='cidrmigration',
                    name='pool',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='migrations', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='blockevent',
                    name='pool',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='block',
                    name='pool',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.PROTECT, related_name='blocks', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='allocationrequest',
                    name='pool',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='requests', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='poolcidr',
                    name='pool',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='cidrs', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='poolcidr',
                    name='space',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.PROTECT, related_name='+', to='pools.addressspace'),
                ),
                migrations.AddField(
                    model_name='freespan',
                    name='pool_cidr',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='free_spans', to='pools.poolcidr'),
                ),
                migrations.AddField(
                    model_name='cidrmigration',
                    name='pool_cidr',
                    field=models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='migrations', to='pools.poolcidr'),
                ),
                migrations.AddField(
                    model_name='poolcidrevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.poolcidr'),
                ),
                migrations.AddField(
                    model_name='poolcidrevent',
                    name='pool',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='poolevent',
                    name='cluster',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='poolevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='poolforecast',
                    name='pool',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='forecasts', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='poolusage',
                    name='pool',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='usage_rows', to='pools.pool'),
                ),
                migrations.AddConstraint(
                    model_name='recovery',
                    constraint=models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('ended_at',), name='one_recovery_at_a_time', nulls_distinct=False),
                ),
                migrations.AddField(
                    model_name='referencefeed',
                    name='cluster',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reference_feeds', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='reference',
                    name='feed',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='references', to='pools.referencefeed'),
                ),
                migrations.AddField(
                    model_name='registerrecord',
                    name='space',
                    field=models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pools.addressspace'),
                ),
                migrations.AddField(
                    model_name='reservedrange',
                    name='pool',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reserved_ranges', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='reservedrange',
                    name='pool_cidr',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='reserved_ranges', to='pools.poolcidr'),
                ),
                migrations.AddField(
                    model_name='reservedrangeevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.reservedrange'),
                ),
                migrations.AddField(
                    model_name='reservedrangeevent',
                    name='pool',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='reservedrangeevent',
                    name='pool_cidr',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.poolcidr'),
                ),
                migrations.AddIndex(
                    model_name='sample',
                    index=models.Index(fields=['day'], name='sample_day'),
                ),
                migrations.AddConstraint(
                    model_name='sample',
                    constraint=models.UniqueConstraint(fields=('pool_id', 'family', 'day'), name='sample_unique'),
                ),
                migrations.AddIndex(
                    model_name='samplesum',
                    index=models.Index(fields=['day'], name='sample_sum_day'),
                ),
                migrations.AddConstraint(
                    model_name='samplesum',
                    constraint=models.UniqueConstraint(fields=('by', 'day', 'org', 'name', 'family', 'rest'), name='sample_sum_unique'),
                ),
                migrations.AddField(
                    model_name='savedfilter',
                    name='owner',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to=settings.AUTH_USER_MODEL),
                ),
                migrations.AddField(
                    model_name='syncrun',
                    name='cluster',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='runs', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='tokenscope',
                    name='cluster',
                    field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.cluster'),
                ),
                migrations.AddField(
                    model_name='tokenscope',
                    name='pool',
                    field=models.ForeignKey(db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='delivery',
                    name='target',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='deliveries', to='pools.webhooktarget'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='webhooktarget',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_webhooktargetevent" ("alerts", "clusters", "codes", "digest", "enabled", "event_pools", "event_types", "host", "least_level", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."alerts", NEW."clusters", NEW."codes", NEW."digest", NEW."enabled", NEW."event_pools", NEW."event_types", NEW."host", NEW."least_level", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."secret_made_at"); RETURN NULL;', hash='9aafda33fb8c2ba8aa30f72aa5cf5ae421e88394', operation='INSERT', pgid='pgtrigger_created_insert_98c71', table='pools_webhooktarget', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='webhooktarget',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."alerts" IS DISTINCT FROM (NEW."alerts") OR OLD."clusters" IS DISTINCT FROM (NEW."clusters") OR OLD."codes" IS DISTINCT FROM (NEW."codes") OR OLD."digest" IS DISTINCT FROM (NEW."digest") OR OLD."enabled" IS DISTINCT FROM (NEW."enabled") OR OLD."event_pools" IS DISTINCT FROM (NEW."event_pools") OR OLD."event_types" IS DISTINCT FROM (NEW."event_types") OR OLD."least_level" IS DISTINCT FROM (NEW."least_level") OR OLD."name" IS DISTINCT FROM (NEW."name"))', func='INSERT INTO "pools_webhooktargetevent" ("alerts", "clusters", "codes", "digest", "enabled", "event_pools", "event_types", "host", "least_level", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."alerts", NEW."clusters", NEW."codes", NEW."digest", NEW."enabled", NEW."event_pools", NEW."event_types", NEW."host", NEW."least_level", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."secret_made_at"); RETURN NULL;', hash='5612290cfca0e671ffba505b605f543ca0fffbb6', operation='UPDATE', pgid='pgtrigger_changed_update_a6829', table='pools_webhooktarget', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='webhooktarget',
                    trigger=pgtrigger.compiler.Trigger(name='url_changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."url" IS DISTINCT FROM (NEW."url"))', func='INSERT INTO "pools_webhooktargetevent" ("alerts", "clusters", "codes", "digest", "enabled", "event_pools", "event_types", "host", "least_level", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."alerts", NEW."clusters", NEW."codes", NEW."digest", NEW."enabled", NEW."event_pools", NEW."event_types", NEW."host", NEW."least_level", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'url_changed\', NEW."id", NEW."secret_made_at"); RETURN NULL;', hash='1f4db3f364ae771a8a7bbc699685b0ead35ec404', operation='UPDATE', pgid='pgtrigger_url_changed_update_de258', table='pools_webhooktarget', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='webhooktarget',
                    trigger=pgtrigger.compiler.Trigger(name='ca_changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."ca" IS DISTINCT FROM (NEW."ca"))', func='INSERT INTO "pools_webhooktargetevent" ("alerts", "clusters", "codes", "digest", "enabled", "event_pools", "event_types", "host", "least_level", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."alerts", NEW."clusters", NEW."codes", NEW."digest", NEW."enabled", NEW."event_pools", NEW."event_types", NEW."host", NEW."least_level", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'ca_changed\', NEW."id", NEW."secret_made_at"); RETURN NULL;', hash='abfc3ce3195083b46d5b9f4a22254fab314621c0', operation='UPDATE', pgid='pgtrigger_ca_changed_update_ca85b', table='pools_webhooktarget', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='webhooktarget',
                    trigger=pgtrigger.compiler.Trigger(name='secret_replaced_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."secret_made_at" IS DISTINCT FROM (NEW."secret_made_at") AND NOT (OLD."sealed" = \'\'))', func='INSERT INTO "pools_webhooktargetevent" ("alerts", "clusters", "codes", "digest", "enabled", "event_pools", "event_types", "host", "least_level", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (NEW."alerts", NEW."clusters", NEW."codes", NEW."digest", NEW."enabled", NEW."event_pools", NEW."event_types", NEW."host", NEW."least_level", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'secret_replaced\', NEW."id", NEW."secret_made_at"); RETURN NULL;', hash='69edfdcb6322d9d3f4481885161badc3597ca4ae', operation='UPDATE', pgid='pgtrigger_secret_replaced_update_d6e56', table='pools_webhooktarget', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='webhooktarget',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_webhooktargetevent" ("alerts", "clusters", "codes", "digest", "enabled", "event_pools", "event_types", "host", "least_level", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "secret_made_at") VALUES (OLD."alerts", OLD."clusters", OLD."codes", OLD."digest", OLD."enabled", OLD."event_pools", OLD."event_types", OLD."host", OLD."least_level", OLD."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."secret_made_at"); RETURN NULL;', hash='d7df590fc47a98ffb7838e97c08dcbf926336749', operation='DELETE', pgid='pgtrigger_deleted_delete_69aa6', table='pools_webhooktarget', when='AFTER')),
                ),
                migrations.AddField(
                    model_name='webhooktargetevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.webhooktarget'),
                ),
                migrations.AddField(
                    model_name='window',
                    name='pool',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='pools.pool'),
                ),
                migrations.AddField(
                    model_name='tokenevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.tokenowner'),
                ),
                migrations.AddField(
                    model_name='factorevent',
                    name='pgh_obj',
                    field=models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='pools.factorowner'),
                ),
                migrations.AddIndex(
                    model_name='auditsegment',
                    index=models.Index(fields=['newest_at'], name='audit_segment_newest'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='auditsegment',
                    trigger=pgtrigger.compiler.Trigger(name='kept', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot delete rows from % table', TG_TABLE_NAME;", hash='39457499b2ea5c7e5dc849d179254470c34693ec', operation='DELETE', pgid='pgtrigger_kept_bd2c4', table='pools_auditsegment', when='BEFORE')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='auditsegment',
                    trigger=pgtrigger.compiler.Trigger(name='sealed', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."id" IS DISTINCT FROM (NEW."id") OR OLD."after_id" IS DISTINCT FROM (NEW."after_id") OR OLD."last_id" IS DISTINCT FROM (NEW."last_id") OR OLD."count" IS DISTINCT FROM (NEW."count") OR OLD."layout_id" IS DISTINCT FROM (NEW."layout_id") OR OLD."oldest_at" IS DISTINCT FROM (NEW."oldest_at") OR OLD."newest_at" IS DISTINCT FROM (NEW."newest_at") OR OLD."marks" IS DISTINCT FROM (NEW."marks") OR OLD."digest" IS DISTINCT FROM (NEW."digest"))', func="RAISE EXCEPTION 'pgtrigger: Cannot update rows from % table', TG_TABLE_NAME;", hash='b5f090b769e3da4272b69679a8a954e32a192994', operation='UPDATE', pgid='pgtrigger_sealed_905a5', table='pools_auditsegment', when='BEFORE')),
                ),
                migrations.AddConstraint(
                    model_name='addressspace',
                    constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='space_name_unique'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='clusterevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='9b1a998e2230cad2218879521de386aef19c41be', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_8b3af', table='pools_clusterevent', when='BEFORE')),
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
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(('mode', 'observed'), _negated=True), ('managed_resources', []), _connector='OR'), name='an_observed_cluster_has_no_managed_resources'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='connection',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_connectionevent" ("cluster_id", "identity", "in_cluster", "managed_resources", "mode", "paused", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "server") VALUES (NEW."cluster_id", NEW."identity", NEW."in_cluster", NEW."managed_resources", NEW."mode", NEW."paused", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."server"); RETURN NULL;', hash='266f525daa1d35386cad4d4f0cdaae9416284d8d', operation='INSERT', pgid='pgtrigger_created_insert_07e43', table='pools_connection', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='connection',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."cluster_id" IS DISTINCT FROM (NEW."cluster_id") OR OLD."identity" IS DISTINCT FROM (NEW."identity") OR OLD."in_cluster" IS DISTINCT FROM (NEW."in_cluster") OR OLD."managed_resources" IS DISTINCT FROM (NEW."managed_resources") OR OLD."mode" IS DISTINCT FROM (NEW."mode") OR OLD."paused" IS DISTINCT FROM (NEW."paused") OR OLD."server" IS DISTINCT FROM (NEW."server"))', func='INSERT INTO "pools_connectionevent" ("cluster_id", "identity", "in_cluster", "managed_resources", "mode", "paused", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "server") VALUES (NEW."cluster_id", NEW."identity", NEW."in_cluster", NEW."managed_resources", NEW."mode", NEW."paused", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."server"); RETURN NULL;', hash='435a30fc9f3a96b8367dd4fe81578521cf6b81a1', operation='UPDATE', pgid='pgtrigger_changed_update_e0d68', table='pools_connection', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='connection',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_connectionevent" ("cluster_id", "identity", "in_cluster", "managed_resources", "mode", "paused", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "server") VALUES (OLD."cluster_id", OLD."identity", OLD."in_cluster", OLD."managed_resources", OLD."mode", OLD."paused", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."server"); RETURN NULL;', hash='7d94ab0dcab9e24b38fe8227f84fbe13b1fb16c9', operation='DELETE', pgid='pgtrigger_deleted_delete_8952d', table='pools_connection', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='connectionevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='e7f937d52a17da13cdb312150e25caff3de26d5e', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_b82a8', table='pools_connectionevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='container',
                    index=django.contrib.postgres.indexes.GinIndex(fields=['tags'], name='container_tags'),
                ),
                migrations.AddIndex(
                    model_name='container',
                    index=django.contrib.postgres.indexes.GinIndex(fields=['custom_fields'], name='container_custom_fields'),
                ),
                migrations.AddIndex(
                    model_name='container',
                    index=models.Index(condition=models.Q(('owner', ''), _negated=True), fields=['owner'], name='container_owner'),
                ),
                migrations.AddConstraint(
                    model_name='container',
                    constraint=models.UniqueConstraint(fields=('cidr', 'space'), name='container_unique', nulls_distinct=False, violation_error_code='already_exists', violation_error_message='The address space already has a container of this CIDR.'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='container',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_containerevent" ("cidr", "custom_fields", "description", "name", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "space_id", "tags") VALUES (NEW."cidr", NEW."custom_fields", NEW."description", NEW."name", NEW."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."space_id", NEW."tags"); RETURN NULL;', hash='98872aa98f29187d302a0716aa6e59c3a0ac103f', operation='INSERT', pgid='pgtrigger_created_insert_e02bf', table='pools_container', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='container',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."cidr" IS DISTINCT FROM (NEW."cidr") OR OLD."custom_fields" IS DISTINCT FROM (NEW."custom_fields") OR OLD."description" IS DISTINCT FROM (NEW."description") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."owner" IS DISTINCT FROM (NEW."owner") OR OLD."space_id" IS DISTINCT FROM (NEW."space_id") OR OLD."tags" IS DISTINCT FROM (NEW."tags"))', func='INSERT INTO "pools_containerevent" ("cidr", "custom_fields", "description", "name", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "space_id", "tags") VALUES (NEW."cidr", NEW."custom_fields", NEW."description", NEW."name", NEW."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."space_id", NEW."tags"); RETURN NULL;', hash='deb467bd4ab7a8c15ec743514eba8128725510ca', operation='UPDATE', pgid='pgtrigger_changed_update_94dcb', table='pools_container', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='container',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_containerevent" ("cidr", "custom_fields", "description", "name", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "space_id", "tags") VALUES (OLD."cidr", OLD."custom_fields", OLD."description", OLD."name", OLD."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."space_id", OLD."tags"); RETURN NULL;', hash='d027ab8d4088e277ac6698616702baa3ca8fd54c', operation='DELETE', pgid='pgtrigger_deleted_delete_ebd78', table='pools_container', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='containerevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='1962d0354d433c81f2aa0d6386f996a226e2c9b8', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_448d6', table='pools_containerevent', when='BEFORE')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='customfieldevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='44226bd7ab76e164e75ecaec4f64bf230cb4ced6', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_4c92f', table='pools_customfieldevent', when='BEFORE')),
                ),
                migrations.AddConstraint(
                    model_name='directoryaccount',
                    constraint=models.UniqueConstraint(fields=('source', 'subject'), name='directory_account_subject_unique'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='directoryaccount',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_directoryaccountevent" ("pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "refusal", "refused_at", "roles", "source", "user_id", "username") VALUES (COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."refusal", NEW."refused_at", NEW."roles", NEW."source", NEW."user_id", NEW."username"); RETURN NULL;', hash='eb0aaa021dfb7c62f332da960e3723509294924d', operation='INSERT', pgid='pgtrigger_created_insert_b87d8', table='pools_directoryaccount', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='directoryaccount',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."refusal" IS DISTINCT FROM (NEW."refusal") OR OLD."refused_at" IS DISTINCT FROM (NEW."refused_at") OR OLD."roles" IS DISTINCT FROM (NEW."roles") OR OLD."source" IS DISTINCT FROM (NEW."source") OR OLD."user_id" IS DISTINCT FROM (NEW."user_id") OR OLD."username" IS DISTINCT FROM (NEW."username"))', func='INSERT INTO "pools_directoryaccountevent" ("pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "refusal", "refused_at", "roles", "source", "user_id", "username") VALUES (COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."refusal", NEW."refused_at", NEW."roles", NEW."source", NEW."user_id", NEW."username"); RETURN NULL;', hash='e57c783c6c5d68c9415a3221a8c9520bc4a7b9da', operation='UPDATE', pgid='pgtrigger_changed_update_e0b67', table='pools_directoryaccount', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='directoryaccount',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_directoryaccountevent" ("pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "refusal", "refused_at", "roles", "source", "user_id", "username") VALUES (COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."refusal", OLD."refused_at", OLD."roles", OLD."source", OLD."user_id", OLD."username"); RETURN NULL;', hash='015b071e5dcc25d6028a330663b3ff3a626b3d72', operation='DELETE', pgid='pgtrigger_deleted_delete_15bb2', table='pools_directoryaccount', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='directoryaccountevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='6c9d5ab2d0f90c07ce11d9935671d83ce58c6c35', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_9b171', table='pools_directoryaccountevent', when='BEFORE')),
                ),
                migrations.AddConstraint(
                    model_name='drift',
                    constraint=models.UniqueConstraint(fields=('cluster', 'kind', 'namespace', 'name', 'path'), name='drift_unique'),
                ),
                migrations.AddIndex(
                    model_name='environmentevent',
                    index=models.Index(django.db.models.fields.json.KeyTransform('actor', 'pgh_context'), models.F('pgh_id'), name='environment_event_actor'),
                ),
                migrations.AddIndex(
                    model_name='environmentevent',
                    index=models.Index(condition=models.Q(('org', ''), _negated=True), fields=['org', 'pgh_id'], name='environment_event_org'),
                ),
                migrations.AddIndex(
                    model_name='environmentevent',
                    index=models.Index(condition=models.Q(('env', ''), _negated=True), fields=['env', 'pgh_id'], name='environment_event_env'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='environmentevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='3a8b9edad901f546fe62ca2b96936510b96dc2be', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_aa526', table='pools_environmentevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='finding',
                    index=models.Index(fields=['-since', '-id'], name='finding_since'),
                ),
                migrations.AddConstraint(
                    model_name='finding',
                    constraint=models.UniqueConstraint(fields=('cluster', 'kind', 'code', 'subject'), name='finding_unique'),
                ),
                migrations.AddIndex(
                    model_name='idempotencykey',
                    index=models.Index(fields=['created_at'], name='idempotency_key_age'),
                ),
                migrations.AddConstraint(
                    model_name='idempotencykey',
                    constraint=models.UniqueConstraint(fields=('user', 'key'), name='idempotency_key_unique'),
                ),
                migrations.AddIndex(
                    model_name='importevent',
                    index=models.Index(fields=['pgh_obj', 'pgh_id'], name='import_event_object'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='importevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='2e87ca495a7f8ef38fa245394aef261bc1c917a3', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_504db', table='pools_importevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='journalentry',
                    index=models.Index(fields=['content_type', 'object_id', 'id'], name='journal_entry_subject'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='journalentry',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_journalentryevent" ("author", "cluster_id", "content_type_id", "kind", "object_id", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "text") VALUES (NEW."author", NEW."cluster_id", NEW."content_type_id", NEW."kind", NEW."object_id", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."text"); RETURN NULL;', hash='35d2371c134677acf8047163217212e5488ed473', operation='INSERT', pgid='pgtrigger_created_insert_04516', table='pools_journalentry', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='journalentry',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."author" IS DISTINCT FROM (NEW."author") OR OLD."cluster_id" IS DISTINCT FROM (NEW."cluster_id") OR OLD."content_type_id" IS DISTINCT FROM (NEW."content_type_id") OR OLD."kind" IS DISTINCT FROM (NEW."kind") OR OLD."object_id" IS DISTINCT FROM (NEW."object_id") OR OLD."text" IS DISTINCT FROM (NEW."text"))', func='INSERT INTO "pools_journalentryevent" ("author", "cluster_id", "content_type_id", "kind", "object_id", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "text") VALUES (NEW."author", NEW."cluster_id", NEW."content_type_id", NEW."kind", NEW."object_id", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."text"); RETURN NULL;', hash='21c64f809dcc1185f0eab07abf104bb9fb9c7938', operation='UPDATE', pgid='pgtrigger_changed_update_2b458', table='pools_journalentry', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='journalentry',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_journalentryevent" ("author", "cluster_id", "content_type_id", "kind", "object_id", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "text") VALUES (OLD."author", OLD."cluster_id", OLD."content_type_id", OLD."kind", OLD."object_id", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."text"); RETURN NULL;', hash='8a008b728f4f399cbc300d12089529cf1655c59c', operation='DELETE', pgid='pgtrigger_deleted_delete_d73d0', table='pools_journalentry', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='journalentryevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='28034d212487d717dad0237acd26c30e477191c1', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_7858d', table='pools_journalentryevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='leak',
                    index=models.Index(condition=models.Q(('confirmed_at__isnull', False)), fields=['cluster', 'id'], name='leak_confirmed'),
                ),
                migrations.AddConstraint(
                    model_name='listcolumns',
                    constraint=models.UniqueConstraint(fields=('user', 'list'), name='list_columns_unique'),
                ),
                migrations.AddConstraint(
                    model_name='listcolumns',
                    constraint=models.CheckConstraint(condition=models.Q(('columns__len__gt', 0)), name='list_has_columns'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='netboxsource',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_netboxsourceevent" ("cluster_id", "every_minutes", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "url") VALUES (NEW."cluster_id", NEW."every_minutes", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."url"); RETURN NULL;', hash='9e23176f96b4e8d75fc917ddabb595b8676120d6', operation='INSERT', pgid='pgtrigger_created_insert_b2023', table='pools_netboxsource', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='netboxsource',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."ca" IS DISTINCT FROM (NEW."ca") OR OLD."cluster_id" IS DISTINCT FROM (NEW."cluster_id") OR OLD."cooldown_seconds" IS DISTINCT FROM (NEW."cooldown_seconds") OR OLD."every_minutes" IS DISTINCT FROM (NEW."every_minutes") OR OLD."holder_kind" IS DISTINCT FROM (NEW."holder_kind") OR OLD."mapping" IS DISTINCT FROM (NEW."mapping") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."url" IS DISTINCT FROM (NEW."url"))', func='INSERT INTO "pools_netboxsourceevent" ("cluster_id", "every_minutes", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "url") VALUES (NEW."cluster_id", NEW."every_minutes", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."url"); RETURN NULL;', hash='71c96868b7bffe438f0e6e876cdc20f01c81f5fc', operation='UPDATE', pgid='pgtrigger_changed_update_74b79', table='pools_netboxsource', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='netboxsource',
                    trigger=pgtrigger.compiler.Trigger(name='token_replaced_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."sealed" IS DISTINCT FROM (NEW."sealed") AND NOT (OLD."sealed" = \'\'))', func='INSERT INTO "pools_netboxsourceevent" ("cluster_id", "every_minutes", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "url") VALUES (NEW."cluster_id", NEW."every_minutes", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'token_replaced\', NEW."id", NEW."url"); RETURN NULL;', hash='d1eed0f000b9a75c2acb269906a9a5434dd756a7', operation='UPDATE', pgid='pgtrigger_token_replaced_update_6ed71', table='pools_netboxsource', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='netboxsource',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_netboxsourceevent" ("cluster_id", "every_minutes", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "url") VALUES (OLD."cluster_id", OLD."every_minutes", OLD."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."url"); RETURN NULL;', hash='9727610111a84da4aa886abdd0ff853c269ba22a', operation='DELETE', pgid='pgtrigger_deleted_delete_0a778', table='pools_netboxsource', when='AFTER')),
                ),
                migrations.AddIndex(
                    model_name='import',
                    index=models.Index(condition=models.Q(('status__in', ['queued', 'drafting', 'committing']), ('undo_wanted', True), _connector='OR'), fields=['id'], name='import_waiting'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='import',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_importevent" ("cluster_id", "counts", "file_name", "format", "kind", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "status") VALUES (NEW."cluster_id", NEW."counts", NEW."file_name", NEW."format", NEW."kind", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."status"); RETURN NULL;', hash='7ccab56048544a7b419b4bbe43c52d9610551d68', operation='INSERT', pgid='pgtrigger_created_insert_d73d5', table='pools_import', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='import',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW."status" IN (\'drafted\', \'committed\', \'undone\', \'cancelled\', \'failed\') AND OLD."status" IS DISTINCT FROM (NEW."status"))', func='INSERT INTO "pools_importevent" ("cluster_id", "counts", "file_name", "format", "kind", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "status") VALUES (NEW."cluster_id", NEW."counts", NEW."file_name", NEW."format", NEW."kind", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."status"); RETURN NULL;', hash='77727aa0bc7549605e3340bfc60849340ff8a4ae', operation='UPDATE', pgid='pgtrigger_changed_update_30b13', table='pools_import', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='netboxsourceevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='e48147474bb591c9594507c20746348d0ca25f13', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_e41d2', table='pools_netboxsourceevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='observedcidr',
                    index=models.Index(fields=['cidr', 'space'], name='observed_cidr_order'),
                ),
                migrations.AddIndex(
                    model_name='observedcidr',
                    index=models.Index(fields=['name'], name='observed_cidr_name'),
                ),
                migrations.AddIndex(
                    model_name='observedcidr',
                    index=django.contrib.postgres.indexes.GistIndex(django.contrib.postgres.indexes.OpClass('cidr', name='inet_ops'), name='observed_cidr_overlap'),
                ),
                migrations.AddConstraint(
                    model_name='observedcidr',
                    constraint=models.UniqueConstraint(fields=('space', 'kind', 'uid', 'role', 'cidr'), name='observed_cidr_unique'),
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
                    model_name='pool',
                    index=django.contrib.postgres.indexes.GinIndex(fields=['tags'], name='pool_tags'),
                ),
                migrations.AddIndex(
                    model_name='pool',
                    index=django.contrib.postgres.indexes.GinIndex(fields=['custom_fields'], name='pool_custom_fields'),
                ),
                migrations.AddIndex(
                    model_name='pool',
                    index=models.Index(condition=models.Q(('owner', ''), _negated=True), fields=['owner'], name='pool_owner'),
                ),
                migrations.AddConstraint(
                    model_name='pool',
                    constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='pool_name_unique', violation_error_code='already_exists', violation_error_message='The cluster already has a pool of this name.'),
                ),
                migrations.AddConstraint(
                    model_name='pool',
                    constraint=models.CheckConstraint(condition=models.Q(('mask_size_v4__range', (1, 32)), ('mask_size_v4', None), _connector='OR'), name='pool_mask_sizes', violation_error_message='An IPv4 mask size must be between 1 and 32.'),
                ),
                migrations.AddConstraint(
                    model_name='pool',
                    constraint=models.CheckConstraint(condition=models.Q(('mask_size_v6__range', (1, 128)), ('mask_size_v6', None), _connector='OR'), name='pool_mask_sizes_v6', violation_error_message='An IPv6 mask size must be between 1 and 128.'),
                ),
                migrations.AddConstraint(
                    model_name='pool',
                    constraint=models.CheckConstraint(condition=models.Q(('cooldown_seconds__range', (0, 315360000)), models.Q(models.Q(('category', 'instance'), _negated=True), ('cooldown_seconds__gte', 3600), _connector='OR')), name='pool_cooldown', violation_error_code='cooldown', violation_error_message='A cooldown must be between 0 and 10 years, and at least 1 hour for instances.'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='pool',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_poolevent" ("allow_first_ip", "allow_last_ip", "category", "cluster_id", "cooldown_seconds", "custom_fields", "description", "dns_pattern", "mask_size_v4", "mask_size_v6", "name", "orphaned_at", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "tags") VALUES (NEW."allow_first_ip", NEW."allow_last_ip", NEW."category", NEW."cluster_id", NEW."cooldown_seconds", NEW."custom_fields", NEW."description", NEW."dns_pattern", NEW."mask_size_v4", NEW."mask_size_v6", NEW."name", NEW."orphaned_at", NEW."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."tags"); RETURN NULL;', hash='48476b17e1035759866db48c2f350ec337b57b6e', operation='INSERT', pgid='pgtrigger_created_insert_03ae5', table='pools_pool', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='pool',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."allow_first_ip" IS DISTINCT FROM (NEW."allow_first_ip") OR OLD."allow_last_ip" IS DISTINCT FROM (NEW."allow_last_ip") OR OLD."category" IS DISTINCT FROM (NEW."category") OR OLD."cluster_id" IS DISTINCT FROM (NEW."cluster_id") OR OLD."cooldown_seconds" IS DISTINCT FROM (NEW."cooldown_seconds") OR OLD."custom_fields" IS DISTINCT FROM (NEW."custom_fields") OR OLD."description" IS DISTINCT FROM (NEW."description") OR OLD."dns_pattern" IS DISTINCT FROM (NEW."dns_pattern") OR OLD."mask_size_v4" IS DISTINCT FROM (NEW."mask_size_v4") OR OLD."mask_size_v6" IS DISTINCT FROM (NEW."mask_size_v6") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."orphaned_at" IS DISTINCT FROM (NEW."orphaned_at") OR OLD."owner" IS DISTINCT FROM (NEW."owner") OR OLD."tags" IS DISTINCT FROM (NEW."tags"))', func='INSERT INTO "pools_poolevent" ("allow_first_ip", "allow_last_ip", "category", "cluster_id", "cooldown_seconds", "custom_fields", "description", "dns_pattern", "mask_size_v4", "mask_size_v6", "name", "orphaned_at", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "tags") VALUES (NEW."allow_first_ip", NEW."allow_last_ip", NEW."category", NEW."cluster_id", NEW."cooldown_seconds", NEW."custom_fields", NEW."description", NEW."dns_pattern", NEW."mask_size_v4", NEW."mask_size_v6", NEW."name", NEW."orphaned_at", NEW."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."tags"); RETURN NULL;', hash='94706c08adadc928a6b041c5fe8a8667cd338d0d', operation='UPDATE', pgid='pgtrigger_changed_update_250cb', table='pools_pool', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='pool',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_poolevent" ("allow_first_ip", "allow_last_ip", "category", "cluster_id", "cooldown_seconds", "custom_fields", "description", "dns_pattern", "mask_size_v4", "mask_size_v6", "name", "orphaned_at", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "tags") VALUES (OLD."allow_first_ip", OLD."allow_last_ip", OLD."category", OLD."cluster_id", OLD."cooldown_seconds", OLD."custom_fields", OLD."description", OLD."dns_pattern", OLD."mask_size_v4", OLD."mask_size_v6", OLD."name", OLD."orphaned_at", OLD."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."tags"); RETURN NULL;', hash='bb26620ea5fde2058e5a6418f2e2082bf46abe1f', operation='DELETE', pgid='pgtrigger_deleted_delete_c02f8', table='pools_pool', when='AFTER')),
                ),
                migrations.AddIndex(
                    model_name='failureevent',
                    index=models.Index(fields=['holder_id', 'pgh_id'], name='failure_event_holder'),
                ),
                migrations.AddIndex(
                    model_name='failureevent',
                    index=models.Index(django.db.models.fields.json.KeyTransform('actor', 'pgh_context'), models.F('pgh_id'), name='failure_event_actor'),
                ),
                migrations.AddIndex(
                    model_name='failureevent',
                    index=models.Index(condition=models.Q(('org', ''), _negated=True), fields=['org', 'pgh_id'], name='failure_event_org'),
                ),
                migrations.AddIndex(
                    model_name='failureevent',
                    index=models.Index(condition=models.Q(('env', ''), _negated=True), fields=['env', 'pgh_id'], name='failure_event_env'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='failureevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='4bfdf5243b8f3cad0574b7ea82365e971214aed0', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_1add0', table='pools_failureevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='environment',
                    index=models.Index(models.OrderBy(models.F('degraded_since'), descending=True, nulls_last=True), models.F('org'), models.F('env'), models.F('id'), name='environment_list'),
                ),
                migrations.AddIndex(
                    model_name='environment',
                    index=models.Index(fields=['org', '-id'], name='environment_org'),
                ),
                migrations.AddIndex(
                    model_name='environment',
                    index=models.Index(fields=['env'], name='environment_env'),
                ),
                migrations.AddConstraint(
                    model_name='environment',
                    constraint=models.UniqueConstraint(fields=('cluster', 'org', 'env'), name='environment_unique'),
                ),
                migrations.AddConstraint(
                    model_name='environment',
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(('degraded_since', None), ('reason', '')), models.Q(('degraded_since__isnull', False), models.Q(('reason', ''), _negated=True)), _connector='OR'), name='environment_degraded_has_reason'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='environment',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NEW.declared_at IS NOT NULL)', func='INSERT INTO "pools_environmentevent" ("cluster_id", "declared_at", "description", "env", "org", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") VALUES (NEW."cluster_id", NEW."declared_at", NEW."description", NEW."env", NEW."org", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id"); RETURN NULL;', hash='2d61792e66b3f62c3ac43b79c8960381e2a4fd86', operation='INSERT', pgid='pgtrigger_created_insert_db28a', table='pools_environment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='environment',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."cluster_id" IS DISTINCT FROM (NEW."cluster_id") OR OLD."declared_at" IS DISTINCT FROM (NEW."declared_at") OR OLD."description" IS DISTINCT FROM (NEW."description") OR OLD."env" IS DISTINCT FROM (NEW."env") OR OLD."org" IS DISTINCT FROM (NEW."org"))', func='INSERT INTO "pools_environmentevent" ("cluster_id", "declared_at", "description", "env", "org", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") VALUES (NEW."cluster_id", NEW."declared_at", NEW."description", NEW."env", NEW."org", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id"); RETURN NULL;', hash='8431344945672d6f9a221eadebdf259c03934e5c', operation='UPDATE', pgid='pgtrigger_changed_update_81116', table='pools_environment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='environment',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_environmentevent" ("cluster_id", "declared_at", "description", "env", "org", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") VALUES (OLD."cluster_id", OLD."declared_at", OLD."description", OLD."env", OLD."org", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id"); RETURN NULL;', hash='fa0ac49cc512fc6ae104ed061d7acd7a0b3c78bc', operation='DELETE', pgid='pgtrigger_deleted_delete_ab9cd', table='pools_environment', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dnsnameevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='1a4c6ca3e8cfe0db87dc48e1cb5336dcdeff59f1', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_3f43c', table='pools_dnsnameevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='dnsname',
                    index=models.Index(fields=['name'], name='dns_name'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dnsname',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_dnsnameevent" ("block_id", "cidr", "holder_id", "holder_kind", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id") VALUES (NEW."block_id", NEW."cidr", NEW."holder_id", NEW."holder_kind", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."block_id", NEW."pool_id"); RETURN NULL;', hash='01c481803de96416e21b991c8d35ab31f80ce6e5', operation='INSERT', pgid='pgtrigger_created_insert_9a541', table='pools_dnsname', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dnsname',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."block_id" IS DISTINCT FROM (NEW."block_id") OR OLD."cidr" IS DISTINCT FROM (NEW."cidr") OR OLD."holder_id" IS DISTINCT FROM (NEW."holder_id") OR OLD."holder_kind" IS DISTINCT FROM (NEW."holder_kind") OR OLD."name" IS DISTINCT FROM (NEW."name") OR OLD."pool_id" IS DISTINCT FROM (NEW."pool_id"))', func='INSERT INTO "pools_dnsnameevent" ("block_id", "cidr", "holder_id", "holder_kind", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id") VALUES (NEW."block_id", NEW."cidr", NEW."holder_id", NEW."holder_kind", NEW."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."block_id", NEW."pool_id"); RETURN NULL;', hash='8818da4a13a98aa6b22672c110f0f5c2718ef59f', operation='UPDATE', pgid='pgtrigger_changed_update_eb6e5', table='pools_dnsname', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='dnsname',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_dnsnameevent" ("block_id", "cidr", "holder_id", "holder_kind", "name", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id") VALUES (OLD."block_id", OLD."cidr", OLD."holder_id", OLD."holder_kind", OLD."name", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."block_id", OLD."pool_id"); RETURN NULL;', hash='e9054eab9277b585e40beca5d990d29832381fda', operation='DELETE', pgid='pgtrigger_deleted_delete_2b75f', table='pools_dnsname', when='AFTER')),
                ),
                migrations.AddIndex(
                    model_name='blockevent',
                    index=models.Index(fields=['cidr', 'pgh_id'], name='block_event_cidr'),
                ),
                migrations.AddIndex(
                    model_name='blockevent',
                    index=models.Index(fields=['holder_id', 'pgh_id'], name='block_event_holder'),
                ),
                migrations.AddIndex(
                    model_name='blockevent',
                    index=models.Index(fields=['pool', 'pgh_id'], name='block_event_pool'),
                ),
                migrations.AddIndex(
                    model_name='blockevent',
                    index=django.contrib.postgres.indexes.BrinIndex(fields=['pgh_created_at'], name='block_event_time'),
                ),
                migrations.AddIndex(
                    model_name='blockevent',
                    index=models.Index(django.db.models.fields.json.KeyTransform('actor', 'pgh_context'), models.F('pgh_id'), name='block_event_actor'),
                ),
                migrations.AddIndex(
                    model_name='blockevent',
                    index=models.Index(condition=models.Q(('org', ''), _negated=True), fields=['org', 'pgh_id'], name='block_event_org'),
                ),
                migrations.AddIndex(
                    model_name='blockevent',
                    index=models.Index(condition=models.Q(('env', ''), _negated=True), fields=['env', 'pgh_id'], name='block_event_env'),
                ),
                migrations.AddIndex(
                    model_name='blockevent',
                    index=models.Index(condition=models.Q(('holder_uid', ''), _negated=True), fields=['holder_uid', 'pgh_id'], name='block_event_holder_uid'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='blockevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='a95157a1f4e56a69d181b4732422fcfb03107ff0', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_62ab9', table='pools_blockevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='block',
                    index=models.Index(condition=models.Q(('available_from__isnull', False), ('withheld', False)), fields=['pool', 'family', 'available_from', 'id'], name='block_queue'),
                ),
                migrations.AddIndex(
                    model_name='block',
                    index=models.Index(condition=models.Q(('state__in', ('held', 'cooling'))), fields=['pool', 'state', 'family', 'withheld'], name='block_pool_state'),
                ),
                migrations.AddIndex(
                    model_name='block',
                    index=models.Index(condition=models.Q(('state__in', ('held', 'cooling'))), fields=['holder_id', 'holder_kind'], name='block_holder'),
                ),
                migrations.AddIndex(
                    model_name='block',
                    index=models.Index(condition=models.Q(('state__in', ('held', 'cooling')), models.Q(('env', ''), _negated=True)), fields=['env', 'org'], name='block_env'),
                ),
                migrations.AddIndex(
                    model_name='block',
                    index=models.Index(condition=models.Q(('state', 'cooling')), fields=['available_from'], name='block_cooling'),
                ),
                migrations.AddConstraint(
                    model_name='block',
                    constraint=models.UniqueConstraint(fields=('space', 'cidr'), name='block_unique', violation_error_code='already_allocated'),
                ),
                migrations.AddConstraint(
                    model_name='block',
                    constraint=models.UniqueConstraint(condition=models.Q(('category__in', ('node', 'instance', 'ipv4')), ('state', 'held'), models.Q(('holder_kind', 'env'), _negated=True)), fields=('holder_id', 'holder_kind', 'space', 'category', 'family'), name='one_block_per_holder', violation_error_code='one_per_holder'),
                ),
                migrations.AddConstraint(
                    model_name='block',
                    constraint=models.UniqueConstraint(condition=models.Q(('category__in', ('node', 'instance', 'ipv4')), ('holder_kind', 'env'), ('state', 'held')), fields=('holder_id', 'org', 'space', 'category', 'family'), name='one_block_per_environment', violation_error_code='one_per_holder'),
                ),
                migrations.AddConstraint(
                    model_name='block',
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(('allocated_at__isnull', False), ('available_from', None), ('state', 'held'), models.Q(('holder_id', ''), _negated=True), models.Q(('holder_kind', ''), _negated=True)), models.Q(('available_from__isnull', False), ('released_at__isnull', False), ('state', 'cooling')), models.Q(('available_from__isnull', False), ('state', 'available')), _connector='OR'), name='block_state'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='block',
                    trigger=pgtrigger.compiler.Trigger(name='allocated_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "pools_blockevent" ("allocated_at", "available_from", "category", "cidr", "env", "family", "holder_id", "holder_kind", "holder_uid", "org", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "released_at", "space_id", "state", "withheld") SELECT new_values."allocated_at", new_values."available_from", new_values."category", new_values."cidr", new_values."env", new_values."family", new_values."holder_id", new_values."holder_kind", new_values."holder_uid", new_values."org", (SELECT COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB), (SELECT ipam_now()), \'allocated\', new_values."id", new_values."pool_id", new_values."released_at", new_values."space_id", new_values."state", new_values."withheld" FROM ( SELECT new_values.* FROM new_values WHERE (new_values."state" = \'held\') ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='5ddc5326196ee364c28fa8cfdf9177433f6b6a1f', level='STATEMENT', operation='INSERT', pgid='pgtrigger_allocated_insert_b7234', referencing='REFERENCING NEW TABLE AS new_values ', table='pools_block', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='block',
                    trigger=pgtrigger.compiler.Trigger(name='updated_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='IF OLD.state = NEW.state AND (NEW.state <> \'held\' OR (OLD.holder_id, OLD.holder_kind, OLD.holder_uid, OLD.org, OLD.env) = (NEW.holder_id, NEW.holder_kind, NEW.holder_uid, NEW.org, NEW.env)) THEN RETURN NULL; END IF; INSERT INTO "pools_blockevent" ("allocated_at", "available_from", "category", "cidr", "env", "family", "holder_id", "holder_kind", "holder_uid", "org", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "released_at", "space_id", "state", "withheld") VALUES (NEW."allocated_at", NEW."available_from", NEW."category", NEW."cidr", NEW."env", NEW."family", NEW."holder_id", NEW."holder_kind", NEW."holder_uid", NEW."org", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), CASE WHEN OLD.state <> \'held\' AND NEW.state = \'held\' THEN \'allocated\' WHEN OLD.state = \'held\' AND NEW.state <> \'held\' THEN \'released\' WHEN OLD.state = \'cooling\' AND NEW.state = \'available\' THEN \'cooldown_ended\' ELSE \'changed\' END, NEW."id", NEW."pool_id", NEW."released_at", NEW."space_id", NEW."state", NEW."withheld"); RETURN NULL;', hash='c88b101cb7a68157cf84eecaeb2dece21fe513db', operation='UPDATE', pgid='pgtrigger_updated_update_e70be', table='pools_block', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='block',
                    trigger=pgtrigger.compiler.Trigger(name='removed_delete', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (NOT (OLD."state" = \'available\'))', func='INSERT INTO "pools_blockevent" ("allocated_at", "available_from", "category", "cidr", "env", "family", "holder_id", "holder_kind", "holder_uid", "org", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "released_at", "space_id", "state", "withheld") VALUES (OLD."allocated_at", OLD."available_from", OLD."category", OLD."cidr", OLD."env", OLD."family", OLD."holder_id", OLD."holder_kind", OLD."holder_uid", OLD."org", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'removed\', OLD."id", OLD."pool_id", OLD."released_at", OLD."space_id", OLD."state", OLD."withheld"); RETURN NULL;', hash='a106c056d69f03d3d4f4f7706f2fcb29abc4865f', operation='DELETE', pgid='pgtrigger_removed_delete_f842f', table='pools_block', when='AFTER')),
                ),
                migrations.AddIndex(
                    model_name='allocationrequest',
                    index=models.Index(condition=models.Q(('state', 'pending')), fields=['pool', 'id'], name='request_pending'),
                ),
                migrations.AddIndex(
                    model_name='allocationrequest',
                    index=models.Index(condition=models.Q(('state', 'pending')), fields=['next_try_at'], name='request_next_try'),
                ),
                migrations.AddIndex(
                    model_name='allocationrequest',
                    index=models.Index(fields=['state', '-id'], name='request_state'),
                ),
                migrations.AddIndex(
                    model_name='poolcidr',
                    index=models.Index(fields=['cidr', 'space'], name='pool_cidr_order'),
                ),
                migrations.AddIndex(
                    model_name='poolcidr',
                    index=django.contrib.postgres.indexes.GinIndex(fields=['tags'], name='pool_cidr_tags'),
                ),
                migrations.AddIndex(
                    model_name='poolcidr',
                    index=django.contrib.postgres.indexes.GinIndex(fields=['custom_fields'], name='pool_cidr_custom_fields'),
                ),
                migrations.AddIndex(
                    model_name='poolcidr',
                    index=models.Index(condition=models.Q(('owner', ''), _negated=True), fields=['owner'], name='pool_cidr_owner'),
                ),
                migrations.AddConstraint(
                    model_name='poolcidr',
                    constraint=django.contrib.postgres.constraints.ExclusionConstraint(expressions=[(models.Func(models.F('space'), models.F('space'), models.Value('[]'), function='int8range'), '&&'), (django.contrib.postgres.indexes.OpClass('cidr', name='inet_ops'), '&&')], name='cidrs_of_a_space_never_overlap', violation_error_code='cidr_overlap', violation_error_message='This CIDR overlaps another CIDR of the address space.'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='poolcidr',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_poolcidrevent" ("cidr", "custom_fields", "orphaned_at", "owner", "pending", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "position", "tags") VALUES (NEW."cidr", NEW."custom_fields", NEW."orphaned_at", NEW."owner", NEW."pending", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."pool_id", NEW."position", NEW."tags"); RETURN NULL;', hash='b4659d98c0d16d386a7ad4e81f690e94e0eee203', operation='INSERT', pgid='pgtrigger_created_insert_b2914', table='pools_poolcidr', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='poolcidr',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."cidr" IS DISTINCT FROM (NEW."cidr") OR OLD."custom_fields" IS DISTINCT FROM (NEW."custom_fields") OR OLD."orphaned_at" IS DISTINCT FROM (NEW."orphaned_at") OR OLD."owner" IS DISTINCT FROM (NEW."owner") OR OLD."pending" IS DISTINCT FROM (NEW."pending") OR OLD."pool_id" IS DISTINCT FROM (NEW."pool_id") OR OLD."position" IS DISTINCT FROM (NEW."position") OR OLD."tags" IS DISTINCT FROM (NEW."tags"))', func='INSERT INTO "pools_poolcidrevent" ("cidr", "custom_fields", "orphaned_at", "owner", "pending", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "position", "tags") VALUES (NEW."cidr", NEW."custom_fields", NEW."orphaned_at", NEW."owner", NEW."pending", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."pool_id", NEW."position", NEW."tags"); RETURN NULL;', hash='bdc14b431ff78868cf373f07c09a3fc72877bab6', operation='UPDATE', pgid='pgtrigger_changed_update_1ceca', table='pools_poolcidr', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='poolcidr',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_poolcidrevent" ("cidr", "custom_fields", "orphaned_at", "owner", "pending", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_id", "position", "tags") VALUES (OLD."cidr", OLD."custom_fields", OLD."orphaned_at", OLD."owner", OLD."pending", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."pool_id", OLD."position", OLD."tags"); RETURN NULL;', hash='50fbd730eb90f33b27aa027f148526b3e3f6e8c0', operation='DELETE', pgid='pgtrigger_deleted_delete_98580', table='pools_poolcidr', when='AFTER')),
                ),
                migrations.AddConstraint(
                    model_name='freespan',
                    constraint=models.UniqueConstraint(fields=('pool_cidr', 'first'), name='span_first_unique'),
                ),
                migrations.AddConstraint(
                    model_name='freespan',
                    constraint=models.CheckConstraint(condition=models.Q(('first__gte', 0), ('last__gte', models.F('first'))), name='span_order'),
                ),
                migrations.AddConstraint(
                    model_name='cidrmigration',
                    constraint=models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('pool_cidr',), name='one_migration_of_a_cidr', violation_error_code='already_exists'),
                ),
                migrations.AddConstraint(
                    model_name='cidrmigration',
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(('ended_at', None), ('outcome', '')), models.Q(('ended_at__isnull', False), models.Q(('outcome', ''), _negated=True)), _connector='OR'), name='an_ended_migration_has_an_outcome'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='poolcidrevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='c7cbc6c8f4b503b44e8141318152759e2975272e', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_e9e78', table='pools_poolcidrevent', when='BEFORE')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='poolevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='227c5e2b1ab2f65ab8f463e21d8d5496d2a93710', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_df9b4', table='pools_poolevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='poolforecast',
                    index=models.Index(fields=['day'], name='pool_forecast_day'),
                ),
                migrations.AddConstraint(
                    model_name='poolforecast',
                    constraint=models.UniqueConstraint(fields=('pool', 'family'), name='pool_forecast_unique'),
                ),
                migrations.AddConstraint(
                    model_name='poolusage',
                    constraint=models.UniqueConstraint(fields=('pool', 'family'), name='pool_usage_unique'),
                ),
                migrations.AddConstraint(
                    model_name='referencefeed',
                    constraint=models.UniqueConstraint(fields=('cluster', 'holder_kind'), name='reference_feed_unique'),
                ),
                migrations.AddConstraint(
                    model_name='reference',
                    constraint=models.UniqueConstraint(fields=('feed', 'holder_id', 'holder_uid', 'org'), name='reference_unique'),
                ),
                migrations.AddIndex(
                    model_name='registerrecord',
                    index=models.Index(condition=models.Q(('source_id__isnull', False)), fields=['source_id'], name='register_record_source'),
                ),
                migrations.AddConstraint(
                    model_name='registerrecord',
                    constraint=models.UniqueConstraint(fields=('space', 'target', 'first', 'last'), name='register_record_unique'),
                ),
                migrations.AddConstraint(
                    model_name='reservedrange',
                    constraint=django.contrib.postgres.constraints.ExclusionConstraint(expressions=[(models.Func(models.F('pool_cidr'), models.F('pool_cidr'), models.Value('[]'), function='int8range'), '&&'), (models.Func(models.F('first'), models.F('last'), models.Value('[]'), function='inetrange'), '&&')], name='ranges_of_a_cidr_never_overlap', violation_error_code='ranges_overlap', violation_error_message='This range overlaps another reserved range of the CIDR.'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='reservedrange',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_reservedrangeevent" ("first", "last", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_cidr_id", "pool_id", "reason") VALUES (NEW."first", NEW."last", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', NEW."id", NEW."pool_cidr_id", NEW."pool_id", NEW."reason"); RETURN NULL;', hash='26deab3b05c8dc5f8d7f1f3b084efa00e0e026d4', operation='INSERT', pgid='pgtrigger_created_insert_66d17', table='pools_reservedrange', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='reservedrange',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(condition='WHEN (OLD."first" IS DISTINCT FROM (NEW."first") OR OLD."last" IS DISTINCT FROM (NEW."last") OR OLD."pool_id" IS DISTINCT FROM (NEW."pool_id") OR OLD."pool_cidr_id" IS DISTINCT FROM (NEW."pool_cidr_id") OR OLD."reason" IS DISTINCT FROM (NEW."reason"))', func='INSERT INTO "pools_reservedrangeevent" ("first", "last", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_cidr_id", "pool_id", "reason") VALUES (NEW."first", NEW."last", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', NEW."id", NEW."pool_cidr_id", NEW."pool_id", NEW."reason"); RETURN NULL;', hash='0436a712c377c7be7f94a3f7507438ce87f117ed', operation='UPDATE', pgid='pgtrigger_changed_update_b905e', table='pools_reservedrange', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='reservedrange',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='INSERT INTO "pools_reservedrangeevent" ("first", "last", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "pool_cidr_id", "pool_id", "reason") VALUES (OLD."first", OLD."last", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', OLD."id", OLD."pool_cidr_id", OLD."pool_id", OLD."reason"); RETURN NULL;', hash='693a7b1f4795abbdd7a6067fdbc23ba5e15e9c35', operation='DELETE', pgid='pgtrigger_deleted_delete_e3244', table='pools_reservedrange', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='reservedrangeevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='bfeec519e0e6184040f5e80134066682998e2c74', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_1af91', table='pools_reservedrangeevent', when='BEFORE')),
                ),
                migrations.AddConstraint(
                    model_name='savedfilter',
                    constraint=models.UniqueConstraint(fields=('owner', 'list', 'name'), name='saved_filter_name_unique', violation_error_code='already_exists', violation_error_message='You have a filter with this name for this list.'),
                ),
                migrations.AddIndex(
                    model_name='syncrun',
                    index=models.Index(fields=['cluster', '-id'], name='sync_run_cluster'),
                ),
                migrations.AddConstraint(
                    model_name='tokenscope',
                    constraint=models.CheckConstraint(condition=models.Q(('level__in', ['read', 'allocate', 'administer'])), name='token_scope_level'),
                ),
                migrations.AddConstraint(
                    model_name='tokenscope',
                    constraint=models.CheckConstraint(condition=models.Q(('cluster', None), ('pool', None), _connector='OR'), name='token_scope_one_limit'),
                ),
                migrations.AddIndex(
                    model_name='delivery',
                    index=models.Index(condition=models.Q(('state', 'pending')), fields=['target', 'next_try_at'], name='delivery_next_try'),
                ),
                migrations.AddIndex(
                    model_name='delivery',
                    index=models.Index(condition=models.Q(('state', 'failed')), fields=['target', 'id'], name='delivery_failed'),
                ),
                migrations.AddConstraint(
                    model_name='delivery',
                    constraint=models.UniqueConstraint(condition=models.Q(('event__in', ['opened', 'ended'])), fields=('target', 'alert', 'event'), name='delivery_unique'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='webhooktargetevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='d6a4eb7ce807792b600ffae73586ef198393e624', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_024a3', table='pools_webhooktargetevent', when='BEFORE')),
                ),
                migrations.AddConstraint(
                    model_name='window',
                    constraint=models.UniqueConstraint(fields=('pool', 'family'), name='window_unique'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='tokenevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='ed0cabece95e76c571187b432c70580cbbcc4ff7', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_9e31c', table='pools_tokenevent', when='BEFORE')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='factorevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='402cbf907120efdda319884752bd4c11ae370dac', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_761a1', table='pools_factorevent', when='BEFORE')),
                ),
            ],
        ),
    ]
