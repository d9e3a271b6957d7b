"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v25'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v25', 'contradictions.v25', 'launchers.v25', 'workload_comparison.v25', 'storage.v25', 'event_log.v25', 'pgtrigger.v25'],
        ),
    ]
