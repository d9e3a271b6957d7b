"""The SQL objects. Made by `make squash-migrations`."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    initial = True

    dependencies = [
        ('pools', '0002_initial_data'),
    ]

    operations = [
        pools.sql.Install(
            app='pools',
            names=['rules.v1', 'allocate.v1', 'observed_cidrs.v1', 'recovery.v1', 'event_log.v1', 'pgtrigger.v1', 'storage.v1'],
        ),
    ]
