"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v28'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v28', 'contradictions.v28', 'launchers.v28', 'workload_comparison.v28', 'storage.v28', 'event_log.v28', 'pgtrigger.v28'],
        ),
    ]
