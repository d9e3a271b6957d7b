"""VM owners whom clusters make; all VM owners as one list. Before the new code."""

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models

from claims import sql


class Migration(migrations.Migration):

    dependencies = [
        ('claims', '0014_webhook_events'),
        ('pools', '0024_webhook_events'),
    ]

    operations = [
        migrations.CreateModel(
            name='AnyMembership',
            fields=[
                ('id', models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name='ID')),
                ('source', models.CharField(choices=[('local', 'here'), ('cluster', 'the cluster')], max_length=7)),
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
                ('namespace', models.CharField(max_length=253)),
                ('role', models.CharField(max_length=253)),
                ('subject_kind', models.CharField(choices=[('User', 'user'), ('Group', 'group')], max_length=5)),
                ('subject', models.CharField(max_length=150)),
                ('since', models.DateTimeField()),
                ('connection', models.ForeignKey(db_index=False, on_delete=django.db.models.deletion.CASCADE, related_name='vm_owners', to='pools.connection')),
            ],
            options={
                'verbose_name': 'VM owner by a cluster',
                'verbose_name_plural': 'VM owners by clusters',
                'ordering': ['connection__cluster__name', 'namespace', 'subject', 'id'],
                'default_permissions': (),
                'indexes': [models.Index(fields=['subject', 'subject_kind'], name='cluster_owner_subject')],
                'constraints': [models.UniqueConstraint(fields=('connection', 'uid', 'subject_kind', 'subject'), name='cluster_owner_unique')],
            },
        ),
        *sql.install("memberships"),
    ]
