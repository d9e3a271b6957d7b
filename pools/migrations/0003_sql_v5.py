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
            names=['rules.v5', 'allocate.v5', 'observed_cidrs.v5', 'recovery.v5', 'event_log.v5', 'pgtrigger.v5', 'storage.v5'],
        ),
    ]
