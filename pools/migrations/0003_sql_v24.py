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
            names=['rules.v24', 'allocate.v24', 'observed_cidrs.v24', 'recovery.v24', 'event_log.v24', 'plan.v24', 'pgtrigger.v24', 'storage.v24'],
        ),
    ]
