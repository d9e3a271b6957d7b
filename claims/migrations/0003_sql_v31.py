"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v31'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v31', 'contradictions.v31', 'launchers.v31', 'workload_comparison.v31', 'storage.v31', 'event_log.v31', 'pgtrigger.v31'],
        ),
    ]
