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
            names=['rules.v9', 'allocate.v9', 'observed_cidrs.v9', 'recovery.v9', 'event_log.v9', 'pgtrigger.v9', 'storage.v9'],
        ),
    ]
