"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v20'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v20', 'contradictions.v20', 'launchers.v20', 'workload_comparison.v20', 'storage.v20', 'event_log.v20', 'pgtrigger.v20'],
        ),
    ]
