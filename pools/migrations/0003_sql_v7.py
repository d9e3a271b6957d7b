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
            names=['rules.v7', 'allocate.v7', 'observed_cidrs.v7', 'recovery.v7', 'event_log.v7', 'pgtrigger.v7', 'storage.v7'],
        ),
    ]
