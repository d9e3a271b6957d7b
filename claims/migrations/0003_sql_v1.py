"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('claims', '0002_initial_data'),
        ('pools', '0003_sql_v1'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['memberships.v1', 'verdicts.v1', 'storage.v1', 'event_log.v1', 'pgtrigger.v1'],
        ),
    ]
