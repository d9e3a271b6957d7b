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
            names=['rules.v12', 'allocate.v12', 'observed_cidrs.v12', 'recovery.v12', 'event_log.v12', 'pgtrigger.v12', 'storage.v12'],
        ),
    ]
