"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v47'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v46', 'contradictions.v46', 'launchers.v46', 'workload_comparison.v46', 'storage.v46', 'event_log.v46', 'pgtrigger.v46'],
        ),
    ]
