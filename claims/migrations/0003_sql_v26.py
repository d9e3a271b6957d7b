"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v26'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v26', 'contradictions.v26', 'launchers.v26', 'workload_comparison.v26', 'storage.v26', 'event_log.v26', 'pgtrigger.v26'],
        ),
    ]
