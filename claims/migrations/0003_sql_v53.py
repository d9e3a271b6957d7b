"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v54'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v53', 'contradictions.v53', 'launchers.v53', 'workload_comparison.v53', 'storage.v53', 'event_log.v53', 'pgtrigger.v53'],
        ),
    ]
