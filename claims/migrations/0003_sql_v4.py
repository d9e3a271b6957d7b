"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v4'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v4', 'contradictions.v4', 'launchers.v4', 'verdicts.v4', 'storage.v4', 'event_log.v4', 'pgtrigger.v4'],
        ),
    ]
