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
            names=['rules.v25', 'allocate.v25', 'observed_cidrs.v25', 'recovery.v25', 'event_log.v25', 'plan.v25', 'pgtrigger.v25', 'storage.v25'],
        ),
    ]
