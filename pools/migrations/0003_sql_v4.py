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
            names=['rules.v4', 'allocate.v4', 'observed_cidrs.v4', 'recovery.v4', 'event_log.v4', 'pgtrigger.v4', 'storage.v4'],
        ),
    ]
