"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v52'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v51', 'contradictions.v51', 'launchers.v51', 'workload_comparison.v51', 'storage.v51', 'event_log.v51', 'pgtrigger.v51'],
        ),
    ]
