"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v5'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v5', 'contradictions.v5', 'launchers.v5', 'workload_comparison.v5', 'storage.v5', 'event_log.v5', 'pgtrigger.v5'],
        ),
    ]
