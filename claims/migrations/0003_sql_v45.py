"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v46'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v45', 'contradictions.v45', 'launchers.v45', 'workload_comparison.v45', 'storage.v45', 'event_log.v45', 'pgtrigger.v45'],
        ),
    ]
