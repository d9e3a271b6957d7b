"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v29'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v29', 'contradictions.v29', 'launchers.v29', 'workload_comparison.v29', 'storage.v29', 'event_log.v29', 'pgtrigger.v29'],
        ),
    ]
