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
            names=['rules.v51', 'allocate.v51', 'observed_cidrs.v51', 'recovery.v51', 'event_log.v51', 'token_events.v51', 'plan.v51', 'pgtrigger.v51', 'storage.v51'],
        ),
    ]
