"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v17'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v17', 'contradictions.v17', 'launchers.v17', 'workload_comparison.v17', 'storage.v17', 'event_log.v17', 'pgtrigger.v17'],
        ),
    ]
