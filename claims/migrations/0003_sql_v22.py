"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v22'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v22', 'contradictions.v22', 'launchers.v22', 'workload_comparison.v22', 'storage.v22', 'event_log.v22', 'pgtrigger.v22'],
        ),
    ]
