"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v15'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v15', 'contradictions.v15', 'launchers.v15', 'workload_comparison.v15', 'storage.v15', 'event_log.v15', 'pgtrigger.v15'],
        ),
    ]
