"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v16'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v16', 'contradictions.v16', 'launchers.v16', 'workload_comparison.v16', 'storage.v16', 'event_log.v16', 'pgtrigger.v16'],
        ),
    ]
