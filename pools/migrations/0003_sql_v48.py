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
            names=['rules.v48', 'allocate.v48', 'observed_cidrs.v48', 'recovery.v48', 'event_log.v48', 'plan.v48', 'pgtrigger.v48', 'storage.v48'],
        ),
    ]
