"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v42'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v41', 'contradictions.v41', 'launchers.v41', 'workload_comparison.v41', 'storage.v41', 'event_log.v41', 'pgtrigger.v41'],
        ),
    ]
