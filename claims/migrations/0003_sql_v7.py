"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v7'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v7', 'contradictions.v7', 'launchers.v7', 'workload_comparison.v7', 'storage.v7', 'event_log.v7', 'pgtrigger.v7'],
        ),
    ]
