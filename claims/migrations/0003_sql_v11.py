"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v11'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v11', 'contradictions.v11', 'launchers.v11', 'workload_comparison.v11', 'storage.v11', 'event_log.v11', 'pgtrigger.v11'],
        ),
    ]
