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
            names=['rules.v16', 'allocate.v16', 'observed_cidrs.v16', 'recovery.v16', 'event_log.v16', 'pgtrigger.v16', 'storage.v16'],
        ),
    ]
