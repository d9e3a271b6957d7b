"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v53'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v52', 'contradictions.v52', 'launchers.v52', 'workload_comparison.v52', 'storage.v52', 'event_log.v52', 'pgtrigger.v52'],
        ),
    ]
