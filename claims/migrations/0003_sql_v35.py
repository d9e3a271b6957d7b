"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v35'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v35', 'contradictions.v35', 'launchers.v35', 'workload_comparison.v35', 'storage.v35', 'event_log.v35', 'pgtrigger.v35'],
        ),
    ]
