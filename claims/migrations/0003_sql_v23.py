"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v23'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v23', 'contradictions.v23', 'launchers.v23', 'workload_comparison.v23', 'storage.v23', 'event_log.v23', 'pgtrigger.v23'],
        ),
    ]
