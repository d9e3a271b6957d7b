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
            names=['rules.v2', 'allocate.v2', 'observed_cidrs.v2', 'recovery.v2', 'event_log.v2', 'pgtrigger.v2', 'storage.v2'],
        ),
    ]
