"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v27'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v27', 'contradictions.v27', 'launchers.v27', 'workload_comparison.v27', 'storage.v27', 'event_log.v27', 'pgtrigger.v27'],
        ),
    ]
