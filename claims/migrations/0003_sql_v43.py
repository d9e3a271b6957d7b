"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v44'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v43', 'contradictions.v43', 'launchers.v43', 'workload_comparison.v43', 'storage.v43', 'event_log.v43', 'pgtrigger.v43'],
        ),
    ]
