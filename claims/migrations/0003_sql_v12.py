"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v12'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v12', 'contradictions.v12', 'launchers.v12', 'workload_comparison.v12', 'storage.v12', 'event_log.v12', 'pgtrigger.v12'],
        ),
    ]
