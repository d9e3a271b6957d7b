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
            names=['rules.v10', 'allocate.v10', 'observed_cidrs.v10', 'recovery.v10', 'event_log.v10', 'pgtrigger.v10', 'storage.v10'],
        ),
    ]
