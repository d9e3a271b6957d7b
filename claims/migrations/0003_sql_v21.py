"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v21'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v21', 'contradictions.v21', 'launchers.v21', 'workload_comparison.v21', 'storage.v21', 'event_log.v21', 'pgtrigger.v21'],
        ),
    ]
