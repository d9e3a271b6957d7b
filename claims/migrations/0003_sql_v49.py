"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v50'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v49', 'contradictions.v49', 'launchers.v49', 'workload_comparison.v49', 'storage.v49', 'event_log.v49', 'pgtrigger.v49'],
        ),
    ]
