"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v33'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v33', 'contradictions.v33', 'launchers.v33', 'workload_comparison.v33', 'storage.v33', 'event_log.v33', 'pgtrigger.v33'],
        ),
    ]
