"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v32'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v32', 'contradictions.v32', 'launchers.v32', 'workload_comparison.v32', 'storage.v32', 'event_log.v32', 'pgtrigger.v32'],
        ),
    ]
