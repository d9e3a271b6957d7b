"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v24'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v24', 'contradictions.v24', 'launchers.v24', 'workload_comparison.v24', 'storage.v24', 'event_log.v24', 'pgtrigger.v24'],
        ),
    ]
