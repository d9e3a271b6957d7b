"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v51'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v50', 'contradictions.v50', 'launchers.v50', 'workload_comparison.v50', 'storage.v50', 'event_log.v50', 'pgtrigger.v50'],
        ),
    ]
