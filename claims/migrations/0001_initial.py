"""The tables (CONTRIBUTING.md: a change of a model)."""

import claims.models.networks
import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.fields.json
import django.db.models.functions.text
import pghistory.utils
import pgtrigger.compiler
import pgtrigger.migrations
import pools.models.fields
import pools.platform.database
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('auth', '0012_alter_user_first_name_max_length'),
        ('pools', '0001_initial'),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        pools.platform.database.CreateTables(
            operations=[
                migrations.CreateModel(
                    name='Membership',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('namespaces', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=63), size=None)),
                        ('role', models.CharField(choices=[('vm-owner', 'VM owner')], default='vm-owner', max_length=16)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='pools.cluster')),
                        ('group', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to='auth.group')),
                        ('user', models.ForeignKey(blank=True, null=True, on_delete=django.db.models.deletion.CASCADE, related_name='memberships', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'verbose_name': 'VM owner',
                        'verbose_name_plural': 'VM owners',
                        'ordering': ['cluster__name', 'user__username', 'group__name'],
                    },
                ),
                migrations.CreateModel(
                    name='AnyMembership',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('source', models.CharField(choices=[('local', 'local'), ('cluster', 'cluster')], max_length=7)),
                        ('subject_user', models.CharField(max_length=150)),
                        ('subject_group', models.CharField(max_length=150)),
                        ('namespaces', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=253), size=None)),
                        ('role', models.CharField(max_length=16)),
                        ('created_at', models.DateTimeField()),
                        ('cluster_role', models.CharField(max_length=253)),
                        ('binding', models.CharField(max_length=253)),
                    ],
                    options={
                        'db_table': 'claims_anymembership',
                        'managed': False,
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='NamespaceWorkloadComparison',
                    fields=[
                        ('section', models.IntegerField()),
                        ('item', models.BigIntegerField()),
                        ('beside', models.BigIntegerField()),
                        ('by', models.CharField(max_length=7)),
                        ('registered_namespace', models.CharField(max_length=253)),
                        ('registered_vm', models.CharField(max_length=253)),
                        ('running_namespace', models.CharField(max_length=253)),
                        ('running_name', models.CharField(max_length=253)),
                        ('same', models.BooleanField()),
                        ('result', models.CharField(choices=[('matching', 'matching'), ('missing', 'missing'), ('different', 'different'), ('unknown', 'unknown')], max_length=9)),
                        ('id', models.CharField(max_length=512, primary_key=True, serialize=False)),
                        ('namespace', models.CharField(max_length=253)),
                    ],
                    options={
                        'db_table': 'claims_namespace_workload_comparison',
                        'ordering': ['section', 'item', 'beside'],
                        'abstract': False,
                        'managed': False,
                    },
                ),
                migrations.CreateModel(
                    name='WorkloadComparison',
                    fields=[
                        ('id', models.CharField(max_length=64, primary_key=True, serialize=False)),
                        ('section', models.IntegerField()),
                        ('item', models.BigIntegerField()),
                        ('beside', models.BigIntegerField()),
                        ('by', models.CharField(max_length=7)),
                        ('registered_namespace', models.CharField(max_length=253)),
                        ('registered_vm', models.CharField(max_length=253)),
                        ('running_namespace', models.CharField(max_length=253)),
                        ('running_name', models.CharField(max_length=253)),
                        ('same', models.BooleanField()),
                        ('result', models.CharField(choices=[('matching', 'matching'), ('missing', 'missing'), ('different', 'different'), ('unknown', 'unknown')], max_length=9)),
                    ],
                    options={
                        'db_table': 'claims_workload_comparison',
                        'ordering': ['section', 'item', 'beside'],
                        'abstract': False,
                        'managed': False,
                    },
                ),
                migrations.CreateModel(
                    name='IPAMClaim',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('namespace', models.CharField(max_length=253)),
                        ('name', models.CharField(max_length=253)),
                        ('interface', models.CharField(blank=True, default='', max_length=253)),
                        ('mac', claims.models.networks.MACField(blank=True, null=True)),
                        ('ips_requested', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('vm', models.CharField(blank=True, default='', max_length=253, verbose_name='VM')),
                        ('vm_uid', models.CharField(blank=True, default='', max_length=64)),
                        ('ips', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('owner_pod', models.CharField(blank=True, default='', max_length=253)),
                        ('conditions', models.JSONField(blank=True, default=list)),
                        ('finalizers', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=317), blank=True, default=list, size=None)),
                        ('deleted_at', models.DateTimeField(blank=True, null=True)),
                        ('uid', models.CharField(blank=True, default='', editable=False, max_length=64)),
                        ('follows_cluster', models.BooleanField(default=False, editable=False)),
                        ('gone_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('note', models.CharField(blank=True, default='', max_length=500)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ipamclaims', to='pools.cluster')),
                    ],
                    options={
                        'verbose_name': 'IPAMClaim',
                        'ordering': ['cluster__name', 'namespace', 'name'],
                    },
                ),
                migrations.CreateModel(
                    name='IPPool',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=253)),
                        ('conditions', models.JSONField(blank=True, default=list, editable=False)),
                        ('problems', models.JSONField(blank=True, default=list, editable=False)),
                        ('duplicate_macs', models.PositiveIntegerField(default=0, editable=False)),
                        ('duplicate_ips', models.PositiveIntegerField(default=0, editable=False)),
                        ('uid', models.CharField(blank=True, default='', editable=False, max_length=64)),
                        ('follows_cluster', models.BooleanField(default=False, editable=False)),
                        ('version', models.PositiveBigIntegerField(default=1, editable=False)),
                        ('agreed', models.CharField(blank=True, default='', editable=False, max_length=160)),
                        ('gone_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('note', models.CharField(blank=True, default='', max_length=500)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='ippools', to='pools.cluster')),
                    ],
                    options={
                        'verbose_name': 'IPPool',
                        'verbose_name_plural': 'IPPools',
                        'ordering': ['cluster__name', 'name'],
                    },
                ),
                migrations.CreateModel(
                    name='Entry',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('mac', claims.models.networks.MACField()),
                        ('ips', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), size=None)),
                        ('vm', models.CharField(blank=True, default='', max_length=253, verbose_name='VM')),
                        ('namespace', models.CharField(blank=True, default='', max_length=253, verbose_name='namespace')),
                        ('source', models.CharField(choices=[('hand', 'manual'), ('api', 'REST'), ('cluster', 'IPPool of the cluster'), ('import', 'import'), ('adopted', 'adopted from a running workload'), ('request', 'requested by a VM owner')], default='hand', max_length=8)),
                        ('note', models.CharField(blank=True, default='', max_length=500)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('ippool', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='entries', to='claims.ippool')),
                    ],
                    options={
                        'verbose_name': 'MAC entry',
                        'verbose_name_plural': 'MAC entries',
                        'ordering': ['ippool_id', 'mac', 'id'],
                    },
                ),
                migrations.CreateModel(
                    name='MembershipEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('namespaces', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=63), size=None)),
                        ('role', models.CharField(choices=[('vm-owner', 'VM owner')], default='vm-owner', max_length=16)),
                        ('cluster', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster')),
                        ('group', models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='auth.group')),
                        ('pgh_obj', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='claims.membership')),
                        ('user', models.ForeignKey(blank=True, db_constraint=False, db_index=False, null=True, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to=settings.AUTH_USER_MODEL)),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='Network',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('name', models.CharField(max_length=253, verbose_name='logical network name')),
                        ('kind', models.CharField(blank=True, choices=[('cudn', 'ClusterUserDefinedNetwork'), ('udn', 'UserDefinedNetwork'), ('nad', 'NetworkAttachmentDefinition'), ('', 'not seen in the cluster')], default='', max_length=4)),
                        ('object_name', models.CharField(blank=True, default='', max_length=253)),
                        ('namespace', models.CharField(blank=True, default='', max_length=253)),
                        ('topology', models.CharField(blank=True, default='', max_length=16)),
                        ('role', models.CharField(blank=True, default='', max_length=16)),
                        ('ipam_mode', models.CharField(blank=True, default='', max_length=16)),
                        ('lifecycle', models.CharField(blank=True, default='', max_length=16)),
                        ('mtu', models.PositiveIntegerField(blank=True, null=True)),
                        ('subnets', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('default_gateways', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('reserved_subnets', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('infrastructure_subnets', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('exclude_subnets', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('join_subnets', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('namespace_selector', models.JSONField(blank=True, null=True)),
                        ('conditions', models.JSONField(blank=True, default=list)),
                        ('uid', models.CharField(blank=True, default='', editable=False, max_length=64)),
                        ('follows_cluster', models.BooleanField(default=False, editable=False)),
                        ('applied', models.BooleanField(default=False)),
                        ('gone_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='networks', to='pools.cluster')),
                        ('pool', models.OneToOneField(blank=True, null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='network', to='pools.pool')),
                    ],
                    options={
                        'verbose_name': 'network',
                        'ordering': ['cluster__name', 'name'],
                        'permissions': [('view_every_namespace', 'Can see the VM networks of all namespaces'), ('request_address', 'Can request addresses for VMs of their namespaces')],
                    },
                ),
                migrations.CreateModel(
                    name='NAD',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('namespace', models.CharField(max_length=253)),
                        ('name', models.CharField(max_length=253)),
                        ('uid', models.CharField(blank=True, default='', editable=False, max_length=64)),
                        ('role', models.CharField(blank=True, default='', max_length=16)),
                        ('allow_persistent_ips', models.BooleanField(default=False)),
                        ('subnets', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('config', models.JSONField(blank=True, default=dict)),
                        ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='nads', to='claims.network')),
                    ],
                    options={
                        'verbose_name': 'network attachment definition',
                        'ordering': ['namespace', 'name'],
                    },
                ),
                migrations.CreateModel(
                    name='IPPoolEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('name', models.CharField(max_length=253)),
                        ('note', models.CharField(blank=True, default='', max_length=500)),
                        ('gone_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('cluster', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster')),
                        ('pgh_obj', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='claims.ippool')),
                        ('network', models.ForeignKey(db_constraint=False, db_index=False, error_messages={'unique': 'The network already has an IPPool.'}, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='claims.network')),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.AddField(
                    model_name='ippool',
                    name='network',
                    field=models.OneToOneField(error_messages={'unique': 'The network already has an IPPool.'}, on_delete=django.db.models.deletion.RESTRICT, related_name='ippool', to='claims.network'),
                ),
                migrations.CreateModel(
                    name='IPAMClaimEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('namespace', models.CharField(max_length=253)),
                        ('name', models.CharField(max_length=253)),
                        ('mac', claims.models.networks.MACField(blank=True, null=True)),
                        ('ips_requested', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('vm', models.CharField(blank=True, default='', max_length=253, verbose_name='VM')),
                        ('vm_uid', models.CharField(blank=True, default='', max_length=64)),
                        ('ips', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('owner_pod', models.CharField(blank=True, default='', max_length=253)),
                        ('deleted_at', models.DateTimeField(blank=True, null=True)),
                        ('gone_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('note', models.CharField(blank=True, default='', max_length=500)),
                        ('cluster', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster')),
                        ('pgh_obj', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='claims.ipamclaim')),
                        ('network', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='claims.network')),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.AddField(
                    model_name='ipamclaim',
                    name='network',
                    field=models.ForeignKey(on_delete=django.db.models.deletion.RESTRICT, related_name='claims', to='claims.network'),
                ),
                migrations.CreateModel(
                    name='NetworkEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('name', models.CharField(max_length=253, verbose_name='logical network name')),
                        ('kind', models.CharField(blank=True, choices=[('cudn', 'ClusterUserDefinedNetwork'), ('udn', 'UserDefinedNetwork'), ('nad', 'NetworkAttachmentDefinition'), ('', 'not seen in the cluster')], default='', max_length=4)),
                        ('topology', models.CharField(blank=True, default='', max_length=16)),
                        ('role', models.CharField(blank=True, default='', max_length=16)),
                        ('lifecycle', models.CharField(blank=True, default='', max_length=16)),
                        ('subnets', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('default_gateways', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('reserved_subnets', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('infrastructure_subnets', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('namespace_selector', models.JSONField(blank=True, null=True)),
                        ('description', models.CharField(blank=True, default='', max_length=500)),
                        ('applied', models.BooleanField(default=False)),
                        ('gone_at', models.DateTimeField(blank=True, editable=False, null=True)),
                        ('tags', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=50), blank=True, db_default=[], default=list, size=None)),
                        ('owner', models.CharField(blank=True, db_default='', default='', max_length=253, verbose_name='owner')),
                        ('custom_fields', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('cluster', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster')),
                        ('pgh_obj', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='claims.network')),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='NetworkSettings',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('annotation', models.CharField(choices=[('default-network', 'v1.multus-cni.io/default-network on pods (enhancement proposal)'), ('addresses', 'network.kubevirt.io/addresses on VMs (ipam-extensions)')], default='default-network', max_length=16)),
                        ('default_nad_namespace', models.CharField(default='ovn-kubernetes', max_length=63)),
                        ('default_nad_name', models.CharField(default='default', max_length=253)),
                        ('cluster', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='network_settings', to='pools.cluster')),
                    ],
                    options={
                        'verbose_name': 'settings of VM networks',
                        'verbose_name_plural': 'settings of VM networks',
                    },
                ),
                migrations.CreateModel(
                    name='NetworkSettingsEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('annotation', models.CharField(choices=[('default-network', 'v1.multus-cni.io/default-network on pods (enhancement proposal)'), ('addresses', 'network.kubevirt.io/addresses on VMs (ipam-extensions)')], default='default-network', max_length=16)),
                        ('default_nad_namespace', models.CharField(default='ovn-kubernetes', max_length=63)),
                        ('default_nad_name', models.CharField(default='default', max_length=253)),
                        ('cluster', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster')),
                        ('pgh_obj', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='claims.networksettings')),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='PortGroup',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=300)),
                        ('namespace', models.CharField(blank=True, default='', max_length=63)),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='port_groups', to='pools.cluster')),
                        ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='port_groups', to='claims.network')),
                    ],
                    options={
                        'verbose_name': 'port group',
                        'ordering': ['cluster__name', 'name'],
                    },
                ),
                migrations.CreateModel(
                    name='VMImport',
                    fields=[
                    ],
                    options={
                        'verbose_name': 'VM import',
                        'verbose_name_plural': 'VM imports',
                        'proxy': True,
                        'default_permissions': ('add', 'change', 'view'),
                        'indexes': [],
                        'constraints': [],
                    },
                    bases=('pools.import',),
                ),
                migrations.CreateModel(
                    name='VMRow',
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
                    name='Wave',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('name', models.CharField(max_length=63)),
                        ('planned_at', models.DateTimeField(blank=True, null=True)),
                        ('note', models.CharField(blank=True, default='', max_length=500)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='waves', to='pools.cluster')),
                    ],
                    options={
                        'verbose_name': 'wave',
                        'verbose_name_plural': 'waves',
                        'ordering': ['cluster__name', 'name'],
                    },
                ),
                migrations.CreateModel(
                    name='WaveEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('name', models.CharField(max_length=63)),
                        ('planned_at', models.DateTimeField(blank=True, null=True)),
                        ('note', models.CharField(blank=True, default='', max_length=500)),
                        ('cluster', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='pools.cluster')),
                        ('pgh_obj', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='claims.wave')),
                    ],
                    options={
                        'abstract': False,
                    },
                ),
                migrations.CreateModel(
                    name='WaveVM',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('namespace', models.CharField(blank=True, default='', max_length=63)),
                        ('vm', models.CharField(max_length=253, verbose_name='VM')),
                        ('source_vm', models.CharField(blank=True, default='', max_length=300)),
                        ('wave', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='vms', to='claims.wave')),
                    ],
                    options={
                        'verbose_name': 'wave VM',
                        'verbose_name_plural': 'wave VMs',
                        'ordering': ['namespace', 'vm'],
                    },
                ),
                migrations.CreateModel(
                    name='Workload',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('kind', models.CharField(choices=[('vmi', 'VM'), ('pod', 'pod'), ('vm', 'VM template')], max_length=4)),
                        ('namespace', models.CharField(max_length=253)),
                        ('name', models.CharField(max_length=253)),
                        ('uid', models.CharField(max_length=64)),
                        ('vm_uid', models.CharField(blank=True, default='', max_length=64)),
                        ('interface', models.CharField(blank=True, default='', max_length=253)),
                        ('mac', claims.models.networks.MACField(blank=True, null=True)),
                        ('ips', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), blank=True, default=list, size=None)),
                        ('node', models.CharField(blank=True, default='', max_length=253)),
                        ('phase', models.CharField(blank=True, default='', max_length=32)),
                        ('pods', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=253), blank=True, default=list, size=None)),
                        ('since', models.DateTimeField()),
                        ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='workloads', to='claims.network')),
                    ],
                    options={
                        'verbose_name': 'workload',
                        'verbose_name_plural': 'workloads',
                        'ordering': ['network_id', 'namespace', 'name'],
                    },
                ),
                migrations.CreateModel(
                    name='IndexEntry',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('address', pools.models.fields.HostAddressField(max_length=39, null=True)),
                        ('mac', claims.models.networks.MACField(null=True)),
                        ('namespace', models.CharField(blank=True, default='', max_length=253)),
                        ('vm', models.CharField(blank=True, default='', max_length=253)),
                        ('holds', models.BooleanField(db_default=True, default=True)),
                        ('duplicate_mac', models.BooleanField(db_default=False, default=False)),
                        ('duplicate_ip', models.BooleanField(db_default=False, default=False)),
                        ('entry', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='index_entries', to='claims.entry')),
                        ('claim', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='index_entries', to='claims.ipamclaim')),
                        ('network', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='index_entries', to='claims.network')),
                        ('workload', models.ForeignKey(null=True, on_delete=django.db.models.deletion.CASCADE, related_name='index_entries', to='claims.workload')),
                    ],
                ),
                migrations.CreateModel(
                    name='WorkloadCounts',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('matching', models.PositiveIntegerField()),
                        ('missing', models.PositiveIntegerField()),
                        ('different', models.PositiveIntegerField()),
                        ('unknown', models.PositiveIntegerField()),
                        ('counted_at', models.DateTimeField()),
                        ('network', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, related_name='+', to='claims.network')),
                    ],
                    options={
                        'default_permissions': (),
                    },
                ),
                migrations.CreateModel(
                    name='ClusterGroupMember',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('group', models.CharField(max_length=150)),
                        ('username', models.CharField(max_length=150)),
                        ('connection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='group_members', to='pools.connection')),
                    ],
                    options={
                        'ordering': ['connection_id', 'group', 'username'],
                        'default_permissions': (),
                        'indexes': [models.Index(fields=['username'], name='cluster_group_member_user')],
                        'constraints': [models.UniqueConstraint(fields=('connection', 'group', 'username'), name='cluster_group_member_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='ClusterOwner',
                    fields=[
                        ('id', models.BigIntegerField(db_default=models.Func(models.Value('claims_membership_id_seq'), function='nextval'), primary_key=True, serialize=False)),
                        ('uid', models.CharField(max_length=64)),
                        ('binding', models.CharField(max_length=253)),
                        ('namespace', models.CharField(max_length=253, verbose_name='namespace')),
                        ('role', models.CharField(max_length=253)),
                        ('subject_kind', models.CharField(choices=[('User', 'user'), ('Group', 'group')], max_length=5)),
                        ('subject', models.CharField(max_length=150)),
                        ('since', models.DateTimeField()),
                        ('connection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='vm_owners', to='pools.connection')),
                    ],
                    options={
                        'verbose_name': 'VM owner from a cluster',
                        'verbose_name_plural': 'VM owners from clusters',
                        'ordering': ['connection__cluster__name', 'namespace', 'subject', 'id'],
                        'default_permissions': (),
                        'indexes': [models.Index(fields=['subject', 'subject_kind'], name='cluster_owner_subject')],
                        'constraints': [models.UniqueConstraint(fields=('connection', 'uid', 'subject_kind', 'subject'), name='cluster_owner_unique')],
                    },
                ),
                migrations.CreateModel(
                    name='Decision',
                    fields=[
                        ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                        ('at', models.DateTimeField()),
                        ('path', models.CharField(max_length=32)),
                        ('operation', models.CharField(max_length=8)),
                        ('namespace', models.CharField(blank=True, default='', max_length=253)),
                        ('name', models.CharField(blank=True, default='', max_length=253)),
                        ('vm', models.CharField(blank=True, default='', max_length=253)),
                        ('network', models.CharField(blank=True, default='', max_length=253)),
                        ('code', models.CharField(max_length=63)),
                        ('message', models.CharField(blank=True, default='', max_length=1000, verbose_name='message')),
                        ('allowed', models.BooleanField(default=True)),
                        ('patch', models.JSONField(blank=True, null=True)),
                        ('milliseconds', models.FloatField(default=0)),
                        ('cluster', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='decisions', to='pools.cluster')),
                    ],
                    options={
                        'verbose_name': 'decision',
                        'verbose_name_plural': 'decisions',
                        'ordering': ['-id'],
                        'indexes': [models.Index(fields=['cluster', '-id'], name='decision_cluster'), models.Index(fields=['cluster', 'namespace', 'vm'], name='decision_vm'), models.Index(fields=['at'], name='decision_at')],
                    },
                ),
                migrations.CreateModel(
                    name='EntryEvent',
                    fields=[
                        ('pgh_created_at', models.DateTimeField(auto_now_add=True)),
                        ('pgh_label', models.TextField(help_text='The event label.')),
                        ('pgh_id', models.BigIntegerField(db_default=models.Func(models.Value('pools_event_number'), function='nextval'), primary_key=True, serialize=False)),
                        ('pgh_context', pghistory.utils.JSONField(null=True)),
                        ('mac', claims.models.networks.MACField()),
                        ('ips', django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=64), size=None)),
                        ('vm', models.CharField(blank=True, default='', max_length=253, verbose_name='VM')),
                        ('namespace', models.CharField(blank=True, default='', max_length=253, verbose_name='namespace')),
                        ('source', models.CharField(choices=[('hand', 'manual'), ('api', 'REST'), ('cluster', 'IPPool of the cluster'), ('import', 'import'), ('adopted', 'adopted from a running workload'), ('request', 'requested by a VM owner')], default='hand', max_length=8)),
                        ('note', models.CharField(blank=True, default='', max_length=500)),
                        ('pgh_obj', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', to='claims.entry')),
                        ('ippool', models.ForeignKey(db_constraint=False, db_index=False, on_delete=django.db.models.deletion.DO_NOTHING, related_name='+', related_query_name='+', to='claims.ippool')),
                    ],
                    options={
                        'abstract': False,
                        'indexes': [models.Index(fields=['pgh_obj', 'pgh_id'], name='entry_event_object'), models.Index(fields=['mac', 'pgh_id'], name='entry_event_mac'), models.Index(fields=['namespace', 'vm', 'pgh_id'], name='entry_event_vm'), models.Index(fields=['vm', 'pgh_id'], name='entry_event_vm_name'), django.contrib.postgres.indexes.GinIndex(fields=['ips'], name='entry_event_ips'), models.Index(django.db.models.fields.json.KeyTransform('actor', 'pgh_context'), models.F('pgh_id'), name='entry_event_actor')],
                    },
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='entryevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='c6120658a79a3517e0ad428c592e0ae983cb9d19', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_8f43b', table='claims_entryevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='entry',
                    index=models.Index(fields=['ippool', 'mac', 'id'], name='entry_mac'),
                ),
                migrations.AddIndex(
                    model_name='entry',
                    index=models.Index(fields=['namespace', 'vm'], name='entry_vm'),
                ),
                migrations.AddIndex(
                    model_name='entry',
                    index=models.Index(fields=['vm', '-id'], name='entry_vm_alone'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='entry',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_entryevent" ("ippool_id", "ips", "mac", "namespace", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "source", "vm") SELECT new_values."ippool_id", new_values."ips", new_values."mac", new_values."namespace", new_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', new_values."id", new_values."source", new_values."vm" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='273e574152a75712dc3da696ba4b3cc668a3572a', level='STATEMENT', operation='INSERT', pgid='pgtrigger_created_insert_c16a6', referencing='REFERENCING NEW TABLE AS new_values ', table='claims_entry', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='entry',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_entryevent" ("ippool_id", "ips", "mac", "namespace", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "source", "vm") SELECT new_values."ippool_id", new_values."ips", new_values."mac", new_values."namespace", new_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', new_values."id", new_values."source", new_values."vm" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."ippool_id" IS DISTINCT FROM (new_values."ippool_id") OR old_values."ips" IS DISTINCT FROM (new_values."ips") OR old_values."mac" IS DISTINCT FROM (new_values."mac") OR old_values."namespace" IS DISTINCT FROM (new_values."namespace") OR old_values."note" IS DISTINCT FROM (new_values."note") OR old_values."source" IS DISTINCT FROM (new_values."source") OR old_values."vm" IS DISTINCT FROM (new_values."vm")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='f9128ca9d410946d90f82f82bb7c9b2d958b369e', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_changed_update_66c16', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='claims_entry', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='entry',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_entryevent" ("ippool_id", "ips", "mac", "namespace", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "source", "vm") SELECT old_values."ippool_id", old_values."ips", old_values."mac", old_values."namespace", old_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', old_values."id", old_values."source", old_values."vm" FROM ( SELECT old_values.* FROM old_values  ) AS old_values, _pgh_attached_context; RETURN NULL;', hash='382c089660b2c43f39e97800709f8ac109432609', level='STATEMENT', operation='DELETE', pgid='pgtrigger_deleted_delete_4023f', referencing='REFERENCING OLD TABLE AS old_values ', table='claims_entry', when='AFTER')),
                ),
                migrations.AddConstraint(
                    model_name='membership',
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(('group', None), ('user__isnull', False)), models.Q(('group__isnull', False), ('user', None)), _connector='OR'), name='membership_of_a_user_or_a_group', violation_error_message='Select either a user or a group.'),
                ),
                migrations.AddConstraint(
                    model_name='membership',
                    constraint=models.UniqueConstraint(fields=('user', 'cluster', 'role'), name='membership_user_unique', violation_error_code='already_exists'),
                ),
                migrations.AddConstraint(
                    model_name='membership',
                    constraint=models.UniqueConstraint(fields=('group', 'cluster', 'role'), name='membership_group_unique', violation_error_code='already_exists'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='membership',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_membershipevent" ("cluster_id", "group_id", "namespaces", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "role", "user_id") SELECT new_values."cluster_id", new_values."group_id", new_values."namespaces", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', new_values."id", new_values."role", new_values."user_id" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='9e5e8a5ca541d5921ec471aeb40f864b28530fb1', level='STATEMENT', operation='INSERT', pgid='pgtrigger_created_insert_0fedf', referencing='REFERENCING NEW TABLE AS new_values ', table='claims_membership', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='membership',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_membershipevent" ("cluster_id", "group_id", "namespaces", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "role", "user_id") SELECT new_values."cluster_id", new_values."group_id", new_values."namespaces", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', new_values."id", new_values."role", new_values."user_id" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."cluster_id" IS DISTINCT FROM (new_values."cluster_id") OR old_values."group_id" IS DISTINCT FROM (new_values."group_id") OR old_values."namespaces" IS DISTINCT FROM (new_values."namespaces") OR old_values."role" IS DISTINCT FROM (new_values."role") OR old_values."user_id" IS DISTINCT FROM (new_values."user_id")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='5ad36eba0493adff35c6d1d35e1e28d6a3c5da39', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_changed_update_d0cb5', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='claims_membership', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='membership',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_membershipevent" ("cluster_id", "group_id", "namespaces", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "role", "user_id") SELECT old_values."cluster_id", old_values."group_id", old_values."namespaces", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', old_values."id", old_values."role", old_values."user_id" FROM ( SELECT old_values.* FROM old_values  ) AS old_values, _pgh_attached_context; RETURN NULL;', hash='efffb6ba3dc54256d85dde3925d7bc4f39c0b927', level='STATEMENT', operation='DELETE', pgid='pgtrigger_deleted_delete_1be5c', referencing='REFERENCING OLD TABLE AS old_values ', table='claims_membership', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='membershipevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='b792369986973e4e4f5519ffad302981448ce973', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_cb87a', table='claims_membershipevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='network',
                    index=django.contrib.postgres.indexes.GinIndex(fields=['tags'], name='network_tags'),
                ),
                migrations.AddIndex(
                    model_name='network',
                    index=django.contrib.postgres.indexes.GinIndex(fields=['custom_fields'], name='network_custom_fields'),
                ),
                migrations.AddIndex(
                    model_name='network',
                    index=models.Index(condition=models.Q(('owner', ''), _negated=True), fields=['owner'], name='network_owner'),
                ),
                migrations.AddConstraint(
                    model_name='network',
                    constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='network_name_unique', violation_error_code='already_exists', violation_error_message='The cluster already has a network with this name.'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='network',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_networkevent" ("applied", "cluster_id", "custom_fields", "default_gateways", "description", "gone_at", "infrastructure_subnets", "kind", "lifecycle", "name", "namespace_selector", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "reserved_subnets", "role", "subnets", "tags", "topology") SELECT new_values."applied", new_values."cluster_id", new_values."custom_fields", new_values."default_gateways", new_values."description", new_values."gone_at", new_values."infrastructure_subnets", new_values."kind", new_values."lifecycle", new_values."name", new_values."namespace_selector", new_values."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', new_values."id", new_values."reserved_subnets", new_values."role", new_values."subnets", new_values."tags", new_values."topology" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='c7f0ae2a80e60b431d416099470cfa79b914e052', level='STATEMENT', operation='INSERT', pgid='pgtrigger_created_insert_c2874', referencing='REFERENCING NEW TABLE AS new_values ', table='claims_network', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='network',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_networkevent" ("applied", "cluster_id", "custom_fields", "default_gateways", "description", "gone_at", "infrastructure_subnets", "kind", "lifecycle", "name", "namespace_selector", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "reserved_subnets", "role", "subnets", "tags", "topology") SELECT new_values."applied", new_values."cluster_id", new_values."custom_fields", new_values."default_gateways", new_values."description", new_values."gone_at", new_values."infrastructure_subnets", new_values."kind", new_values."lifecycle", new_values."name", new_values."namespace_selector", new_values."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', new_values."id", new_values."reserved_subnets", new_values."role", new_values."subnets", new_values."tags", new_values."topology" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."applied" IS DISTINCT FROM (new_values."applied") OR old_values."cluster_id" IS DISTINCT FROM (new_values."cluster_id") OR old_values."custom_fields" IS DISTINCT FROM (new_values."custom_fields") OR old_values."default_gateways" IS DISTINCT FROM (new_values."default_gateways") OR old_values."description" IS DISTINCT FROM (new_values."description") OR old_values."gone_at" IS DISTINCT FROM (new_values."gone_at") OR old_values."infrastructure_subnets" IS DISTINCT FROM (new_values."infrastructure_subnets") OR old_values."kind" IS DISTINCT FROM (new_values."kind") OR old_values."lifecycle" IS DISTINCT FROM (new_values."lifecycle") OR old_values."name" IS DISTINCT FROM (new_values."name") OR old_values."namespace_selector" IS DISTINCT FROM (new_values."namespace_selector") OR old_values."owner" IS DISTINCT FROM (new_values."owner") OR old_values."reserved_subnets" IS DISTINCT FROM (new_values."reserved_subnets") OR old_values."role" IS DISTINCT FROM (new_values."role") OR old_values."subnets" IS DISTINCT FROM (new_values."subnets") OR old_values."tags" IS DISTINCT FROM (new_values."tags") OR old_values."topology" IS DISTINCT FROM (new_values."topology")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='b778e7ac86f283c97ff9999c9bb6db17e2489dd7', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_changed_update_6f129', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='claims_network', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='network',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_networkevent" ("applied", "cluster_id", "custom_fields", "default_gateways", "description", "gone_at", "infrastructure_subnets", "kind", "lifecycle", "name", "namespace_selector", "owner", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "reserved_subnets", "role", "subnets", "tags", "topology") SELECT old_values."applied", old_values."cluster_id", old_values."custom_fields", old_values."default_gateways", old_values."description", old_values."gone_at", old_values."infrastructure_subnets", old_values."kind", old_values."lifecycle", old_values."name", old_values."namespace_selector", old_values."owner", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', old_values."id", old_values."reserved_subnets", old_values."role", old_values."subnets", old_values."tags", old_values."topology" FROM ( SELECT old_values.* FROM old_values  ) AS old_values, _pgh_attached_context; RETURN NULL;', hash='eb51a6c7eadc8e12992d67864dc7938800872f17', level='STATEMENT', operation='DELETE', pgid='pgtrigger_deleted_delete_30e9b', referencing='REFERENCING OLD TABLE AS old_values ', table='claims_network', when='AFTER')),
                ),
                migrations.AddIndex(
                    model_name='nad',
                    index=models.Index(fields=['namespace', 'name'], name='nad_namespace'),
                ),
                migrations.AddConstraint(
                    model_name='nad',
                    constraint=models.UniqueConstraint(fields=('network', 'namespace', 'name'), name='nad_unique'),
                ),
                migrations.AddIndex(
                    model_name='ippoolevent',
                    index=models.Index(fields=['pgh_obj', 'pgh_id'], name='ippool_event_object'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='ippoolevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='2fe355aacdbc5e204fc5e9452b9fd68e480ed372', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_a2afe', table='claims_ippoolevent', when='BEFORE')),
                ),
                migrations.AddConstraint(
                    model_name='ippool',
                    constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='ippool_name_unique', violation_error_code='already_exists', violation_error_message='The cluster already has an IPPool with this name.'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='ippool',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_ippoolevent" ("cluster_id", "gone_at", "name", "network_id", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") SELECT new_values."cluster_id", new_values."gone_at", new_values."name", new_values."network_id", new_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', new_values."id" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='20091903e15b6b53d9eaaf4b82fbd791de339cd2', level='STATEMENT', operation='INSERT', pgid='pgtrigger_created_insert_b78d2', referencing='REFERENCING NEW TABLE AS new_values ', table='claims_ippool', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='ippool',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_ippoolevent" ("cluster_id", "gone_at", "name", "network_id", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") SELECT new_values."cluster_id", new_values."gone_at", new_values."name", new_values."network_id", new_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', new_values."id" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."cluster_id" IS DISTINCT FROM (new_values."cluster_id") OR old_values."gone_at" IS DISTINCT FROM (new_values."gone_at") OR old_values."name" IS DISTINCT FROM (new_values."name") OR old_values."network_id" IS DISTINCT FROM (new_values."network_id") OR old_values."note" IS DISTINCT FROM (new_values."note")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='8ddfc269eb2e8b7ae78aa04084324d7840f48890', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_changed_update_698a3', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='claims_ippool', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='ippool',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_ippoolevent" ("cluster_id", "gone_at", "name", "network_id", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") SELECT old_values."cluster_id", old_values."gone_at", old_values."name", old_values."network_id", old_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', old_values."id" FROM ( SELECT old_values.* FROM old_values  ) AS old_values, _pgh_attached_context; RETURN NULL;', hash='9ba98283284446d6baf9d3d51acf1cf47c99df06', level='STATEMENT', operation='DELETE', pgid='pgtrigger_deleted_delete_911e5', referencing='REFERENCING OLD TABLE AS old_values ', table='claims_ippool', when='AFTER')),
                ),
                migrations.AddIndex(
                    model_name='ipamclaimevent',
                    index=models.Index(fields=['pgh_obj', 'pgh_id'], name='ipamclaim_event_object'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaimevent',
                    index=models.Index(fields=['namespace', 'vm', 'pgh_id'], name='ipamclaim_event_vm'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaimevent',
                    index=models.Index(fields=['vm', 'pgh_id'], name='ipamclaim_event_vm_name'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaimevent',
                    index=models.Index(fields=['mac', 'pgh_id'], name='ipamclaim_event_mac'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaimevent',
                    index=models.Index(fields=['name', 'pgh_id'], name='ipamclaim_event_name'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaimevent',
                    index=django.contrib.postgres.indexes.GinIndex(fields=['ips'], name='ipamclaim_event_ips'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaimevent',
                    index=models.Index(django.db.models.fields.json.KeyTransform('actor', 'pgh_context'), models.F('pgh_id'), name='ipamclaim_event_actor'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaimevent',
                    index=models.Index(condition=models.Q(('vm_uid', ''), _negated=True), fields=['vm_uid', 'pgh_id'], name='ipamclaim_event_vm_uid'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='ipamclaimevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='28141ac003b156f4a9501729e5363bd3ec7c6307', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_08bd3', table='claims_ipamclaimevent', when='BEFORE')),
                ),
                migrations.AddIndex(
                    model_name='ipamclaim',
                    index=models.Index(fields=['vm', 'namespace', 'cluster'], name='ipamclaim_vm'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaim',
                    index=models.Index(fields=['namespace', 'name'], name='ipamclaim_namespace'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaim',
                    index=models.Index(fields=['name'], name='ipamclaim_name'),
                ),
                migrations.AddIndex(
                    model_name='ipamclaim',
                    index=models.Index(condition=models.Q(('ips', [])), fields=['id'], name='ipamclaim_without_ips'),
                ),
                migrations.AddConstraint(
                    model_name='ipamclaim',
                    constraint=models.UniqueConstraint(fields=('cluster', 'namespace', 'name'), name='ipamclaim_name_unique', violation_error_code='already_exists', violation_error_message='The namespace already has an IPAMClaim with this name.'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='ipamclaim',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_ipamclaimevent" ("cluster_id", "deleted_at", "gone_at", "ips", "ips_requested", "mac", "name", "namespace", "network_id", "note", "owner_pod", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "vm", "vm_uid") SELECT new_values."cluster_id", new_values."deleted_at", new_values."gone_at", new_values."ips", new_values."ips_requested", new_values."mac", new_values."name", new_values."namespace", new_values."network_id", new_values."note", new_values."owner_pod", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', new_values."id", new_values."vm", new_values."vm_uid" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='8508942cc11691a97df6b4c94c4cbe4f84a6c66a', level='STATEMENT', operation='INSERT', pgid='pgtrigger_created_insert_e1c88', referencing='REFERENCING NEW TABLE AS new_values ', table='claims_ipamclaim', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='ipamclaim',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_ipamclaimevent" ("cluster_id", "deleted_at", "gone_at", "ips", "ips_requested", "mac", "name", "namespace", "network_id", "note", "owner_pod", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "vm", "vm_uid") SELECT new_values."cluster_id", new_values."deleted_at", new_values."gone_at", new_values."ips", new_values."ips_requested", new_values."mac", new_values."name", new_values."namespace", new_values."network_id", new_values."note", new_values."owner_pod", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', new_values."id", new_values."vm", new_values."vm_uid" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."cluster_id" IS DISTINCT FROM (new_values."cluster_id") OR old_values."deleted_at" IS DISTINCT FROM (new_values."deleted_at") OR old_values."gone_at" IS DISTINCT FROM (new_values."gone_at") OR old_values."ips" IS DISTINCT FROM (new_values."ips") OR old_values."ips_requested" IS DISTINCT FROM (new_values."ips_requested") OR old_values."mac" IS DISTINCT FROM (new_values."mac") OR old_values."name" IS DISTINCT FROM (new_values."name") OR old_values."namespace" IS DISTINCT FROM (new_values."namespace") OR old_values."network_id" IS DISTINCT FROM (new_values."network_id") OR old_values."note" IS DISTINCT FROM (new_values."note") OR old_values."owner_pod" IS DISTINCT FROM (new_values."owner_pod") OR old_values."vm" IS DISTINCT FROM (new_values."vm") OR old_values."vm_uid" IS DISTINCT FROM (new_values."vm_uid")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='4482953c47fe67d23b8699bdb4f644f3e3829cab', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_changed_update_d5c2c', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='claims_ipamclaim', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='ipamclaim',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_ipamclaimevent" ("cluster_id", "deleted_at", "gone_at", "ips", "ips_requested", "mac", "name", "namespace", "network_id", "note", "owner_pod", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "vm", "vm_uid") SELECT old_values."cluster_id", old_values."deleted_at", old_values."gone_at", old_values."ips", old_values."ips_requested", old_values."mac", old_values."name", old_values."namespace", old_values."network_id", old_values."note", old_values."owner_pod", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', old_values."id", old_values."vm", old_values."vm_uid" FROM ( SELECT old_values.* FROM old_values  ) AS old_values, _pgh_attached_context; RETURN NULL;', hash='d26f8db9980f6619510d4b017d8f08476470c410', level='STATEMENT', operation='DELETE', pgid='pgtrigger_deleted_delete_95943', referencing='REFERENCING OLD TABLE AS old_values ', table='claims_ipamclaim', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='networkevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='312b5772c0b1636a54c0f85ed55698d776b53545', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_2df63', table='claims_networkevent', when='BEFORE')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='networksettings',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_networksettingsevent" ("annotation", "cluster_id", "default_nad_name", "default_nad_namespace", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") SELECT new_values."annotation", new_values."cluster_id", new_values."default_nad_name", new_values."default_nad_namespace", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', new_values."id" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='2da9432dc8fa1a69195116830c590cc6557db0e8', level='STATEMENT', operation='INSERT', pgid='pgtrigger_created_insert_7a82b', referencing='REFERENCING NEW TABLE AS new_values ', table='claims_networksettings', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='networksettings',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_networksettingsevent" ("annotation", "cluster_id", "default_nad_name", "default_nad_namespace", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") SELECT new_values."annotation", new_values."cluster_id", new_values."default_nad_name", new_values."default_nad_namespace", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', new_values."id" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."annotation" IS DISTINCT FROM (new_values."annotation") OR old_values."cluster_id" IS DISTINCT FROM (new_values."cluster_id") OR old_values."default_nad_name" IS DISTINCT FROM (new_values."default_nad_name") OR old_values."default_nad_namespace" IS DISTINCT FROM (new_values."default_nad_namespace")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='82575a49217439cc8ccc762573d9fe11b9c1a644', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_changed_update_d33be', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='claims_networksettings', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='networksettings',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_networksettingsevent" ("annotation", "cluster_id", "default_nad_name", "default_nad_namespace", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id") SELECT old_values."annotation", old_values."cluster_id", old_values."default_nad_name", old_values."default_nad_namespace", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', old_values."id" FROM ( SELECT old_values.* FROM old_values  ) AS old_values, _pgh_attached_context; RETURN NULL;', hash='3d6d934cb05a21764e3798ee0eb209034cfffb14', level='STATEMENT', operation='DELETE', pgid='pgtrigger_deleted_delete_58d43', referencing='REFERENCING OLD TABLE AS old_values ', table='claims_networksettings', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='networksettingsevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='17e45f8e053a1d5ea5c4f817df64c8458d8fd4ef', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_64ec3', table='claims_networksettingsevent', when='BEFORE')),
                ),
                migrations.AddConstraint(
                    model_name='portgroup',
                    constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='port_group_name_unique'),
                ),
                migrations.AddConstraint(
                    model_name='wave',
                    constraint=models.UniqueConstraint(fields=('cluster', 'name'), name='wave_name_unique', violation_error_code='already_exists', violation_error_message='The cluster already has a wave with this name.'),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='wave',
                    trigger=pgtrigger.compiler.Trigger(name='created_insert', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_waveevent" ("cluster_id", "name", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "planned_at") SELECT new_values."cluster_id", new_values."name", new_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'created\', new_values."id", new_values."planned_at" FROM ( SELECT new_values.* FROM new_values  ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='c71f3974490d156609b8ce0c9cea4060a4f6b230', level='STATEMENT', operation='INSERT', pgid='pgtrigger_created_insert_a847c', referencing='REFERENCING NEW TABLE AS new_values ', table='claims_wave', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='wave',
                    trigger=pgtrigger.compiler.Trigger(name='changed_update', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_waveevent" ("cluster_id", "name", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "planned_at") SELECT new_values."cluster_id", new_values."name", new_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'changed\', new_values."id", new_values."planned_at" FROM ( SELECT new_values.* FROM old_values JOIN new_values ON (old_values."id") = (new_values."id") WHERE (old_values."cluster_id" IS DISTINCT FROM (new_values."cluster_id") OR old_values."name" IS DISTINCT FROM (new_values."name") OR old_values."note" IS DISTINCT FROM (new_values."note") OR old_values."planned_at" IS DISTINCT FROM (new_values."planned_at")) ) AS new_values, _pgh_attached_context; RETURN NULL;', hash='ce34e1851716f7ab81a7bf1c3152293d1ec3e899', level='STATEMENT', operation='UPDATE', pgid='pgtrigger_changed_update_37abc', referencing='REFERENCING OLD TABLE AS old_values  NEW TABLE AS new_values ', table='claims_wave', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='wave',
                    trigger=pgtrigger.compiler.Trigger(name='deleted_delete', sql=pgtrigger.compiler.UpsertTriggerSql(func='WITH _pgh_attached_context AS ( SELECT _pgh_attach_context() AS value ) INSERT INTO "claims_waveevent" ("cluster_id", "name", "note", "pgh_context", "pgh_created_at", "pgh_label", "pgh_obj_id", "planned_at") SELECT old_values."cluster_id", old_values."name", old_values."note", COALESCE(NULLIF(CURRENT_SETTING(\'pghistory.context_metadata\', TRUE), \'\'), NULL)::JSONB, ipam_now(), \'deleted\', old_values."id", old_values."planned_at" FROM ( SELECT old_values.* FROM old_values  ) AS old_values, _pgh_attached_context; RETURN NULL;', hash='4fed5e7381c710faa728dfe51e55e173aca5ca21', level='STATEMENT', operation='DELETE', pgid='pgtrigger_deleted_delete_283f7', referencing='REFERENCING OLD TABLE AS old_values ', table='claims_wave', when='AFTER')),
                ),
                pgtrigger.migrations.AddTrigger(
                    model_name='waveevent',
                    trigger=pgtrigger.compiler.Trigger(name='append_only', sql=pgtrigger.compiler.UpsertTriggerSql(func="RAISE EXCEPTION 'pgtrigger: Cannot update or delete rows from % table', TG_TABLE_NAME;", hash='f350ef92769e278ba6ebd52a252585be4496860d', operation='UPDATE OR DELETE', pgid='pgtrigger_append_only_90ade', table='claims_waveevent', when='BEFORE')),
                ),
                migrations.AddConstraint(
                    model_name='wavevm',
                    constraint=models.UniqueConstraint(fields=('wave', 'namespace', 'vm'), name='wave_vm_unique'),
                ),
                migrations.AddIndex(
                    model_name='workload',
                    index=models.Index(fields=['namespace', 'name'], name='workload_name'),
                ),
                migrations.AddIndex(
                    model_name='workload',
                    index=models.Index(fields=['name'], name='workload_name_alone'),
                ),
                migrations.AddConstraint(
                    model_name='workload',
                    constraint=models.UniqueConstraint(fields=('network', 'kind', 'uid', 'interface'), name='workload_unique'),
                ),
                migrations.AddIndex(
                    model_name='indexentry',
                    index=models.Index(condition=models.Q(('address__isnull', False)), fields=['network', 'address'], name='index_entry_address'),
                ),
                migrations.AddIndex(
                    model_name='indexentry',
                    index=models.Index(condition=models.Q(('mac__isnull', False)), fields=['network', 'mac'], name='index_entry_mac'),
                ),
                migrations.AddIndex(
                    model_name='indexentry',
                    index=models.Index(condition=models.Q(('duplicate_mac', True), ('duplicate_ip', True), _connector='OR'), fields=['network'], name='index_entry_duplicate'),
                ),
                migrations.AddConstraint(
                    model_name='indexentry',
                    constraint=models.CheckConstraint(condition=models.Q(models.Q(('claim', None), ('entry__isnull', False), ('workload', None)), models.Q(('claim__isnull', False), ('entry', None), ('workload', None)), models.Q(('claim', None), ('entry', None), ('workload__isnull', False)), _connector='OR'), name='index_entry_has_one_owner'),
                ),
                migrations.AddConstraint(
                    model_name='indexentry',
                    constraint=models.CheckConstraint(condition=models.Q(('address__isnull', False), ('mac__isnull', False), models.Q(('vm', ''), _negated=True), _connector='OR'), name='index_entry_names_something'),
                ),
            ],
        ),
    ]
