"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v48'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v47', 'contradictions.v47', 'launchers.v47', 'workload_comparison.v47', 'storage.v47', 'event_log.v47', 'pgtrigger.v47'],
        ),
    ]
