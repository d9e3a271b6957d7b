"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v13'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v13', 'contradictions.v13', 'launchers.v13', 'workload_comparison.v13', 'storage.v13', 'event_log.v13', 'pgtrigger.v13'],
        ),
    ]
