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
            names=['rules.v17', 'allocate.v17', 'observed_cidrs.v17', 'recovery.v17', 'event_log.v17', 'pgtrigger.v17', 'storage.v17'],
        ),
    ]
