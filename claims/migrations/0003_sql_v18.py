"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v18'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v18', 'contradictions.v18', 'launchers.v18', 'workload_comparison.v18', 'storage.v18', 'event_log.v18', 'pgtrigger.v18'],
        ),
    ]
