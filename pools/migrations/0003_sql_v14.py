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
            names=['rules.v14', 'allocate.v14', 'observed_cidrs.v14', 'recovery.v14', 'event_log.v14', 'pgtrigger.v14', 'storage.v14'],
        ),
    ]
