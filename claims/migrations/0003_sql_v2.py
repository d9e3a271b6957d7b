"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v2'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v2', 'verdicts.v2', 'storage.v2', 'event_log.v2', 'pgtrigger.v2'],
        ),
    ]
