"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v19'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v19', 'contradictions.v19', 'launchers.v19', 'workload_comparison.v19', 'storage.v19', 'event_log.v19', 'pgtrigger.v19'],
        ),
    ]
