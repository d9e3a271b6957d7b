"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v6'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v6', 'contradictions.v6', 'launchers.v6', 'workload_comparison.v6', 'storage.v6', 'event_log.v6', 'pgtrigger.v6'],
        ),
    ]
