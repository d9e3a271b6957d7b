"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v10'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v10', 'contradictions.v10', 'launchers.v10', 'workload_comparison.v10', 'storage.v10', 'event_log.v10', 'pgtrigger.v10'],
        ),
    ]
