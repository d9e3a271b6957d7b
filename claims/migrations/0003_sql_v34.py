"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v34'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v34', 'contradictions.v34', 'launchers.v34', 'workload_comparison.v34', 'storage.v34', 'event_log.v34', 'pgtrigger.v34'],
        ),
    ]
