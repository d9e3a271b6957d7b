"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v30'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v30', 'contradictions.v30', 'launchers.v30', 'workload_comparison.v30', 'storage.v30', 'event_log.v30', 'pgtrigger.v30'],
        ),
    ]
