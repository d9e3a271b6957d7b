"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v14'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v14', 'contradictions.v14', 'launchers.v14', 'workload_comparison.v14', 'storage.v14', 'event_log.v14', 'pgtrigger.v14'],
        ),
    ]
