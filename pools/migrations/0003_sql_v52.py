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
            names=['rules.v52', 'allocate.v52', 'observed_cidrs.v52', 'recovery.v52', 'event_log.v52', 'plan.v52', 'pgtrigger.v52', 'storage.v52'],
        ),
    ]
