"""Migrations of CIDRs, as somebody wants them. Goes before the code."""

import django.contrib.postgres.fields
import django.db.models.deletion
import netfields.fields
import pools.models.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pools', '0009_following'),
    ]

    operations = [
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
                ('pool', models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, related_name='migrations', to='pools.pool')),
                ('pool_cidr', models.ForeignKey(null=True, on_delete=django.db.models.deletion.SET_NULL, related_name='migrations', to='pools.poolcidr')),
            ],
            options={
                'verbose_name': 'migration of a CIDR',
                'verbose_name_plural': 'migrations of CIDRs',
                'ordering': ['-id'],
                'default_permissions': (),
                'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at', None)), fields=('pool_cidr',), name='one_migration_of_a_cidr', violation_error_code='already_exists'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at', None), ('outcome', '')), models.Q(('ended_at__isnull', False), models.Q(('outcome', ''), _negated=True)), _connector='OR'), name='an_ended_migration_has_an_outcome')],
            },
        ),
    ]
