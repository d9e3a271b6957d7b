"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v45'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v44', 'contradictions.v44', 'launchers.v44', 'workload_comparison.v44', 'storage.v44', 'event_log.v44', 'pgtrigger.v44'],
        ),
    ]
