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
            names=['rules.v6', 'allocate.v6', 'observed_cidrs.v6', 'recovery.v6', 'event_log.v6', 'pgtrigger.v6', 'storage.v6'],
        ),
    ]
