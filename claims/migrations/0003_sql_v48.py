"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v49'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v48', 'contradictions.v48', 'launchers.v48', 'workload_comparison.v48', 'storage.v48', 'event_log.v48', 'pgtrigger.v48'],
        ),
    ]
