"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v9'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v9', 'contradictions.v9', 'launchers.v9', 'workload_comparison.v9', 'storage.v9', 'event_log.v9', 'pgtrigger.v9'],
        ),
    ]
