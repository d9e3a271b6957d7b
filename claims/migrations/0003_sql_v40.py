"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v41'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v40', 'contradictions.v40', 'launchers.v40', 'workload_comparison.v40', 'storage.v40', 'event_log.v40', 'pgtrigger.v40'],
        ),
    ]
