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
            names=['rules.v54', 'allocate.v54', 'observed_cidrs.v54', 'recovery.v54', 'event_log.v54', 'token_events.v54', 'plan.v54', 'pgtrigger.v54', 'storage.v54'],
        ),
    ]
