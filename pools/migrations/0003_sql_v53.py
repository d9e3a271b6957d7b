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
            names=['rules.v53', 'allocate.v53', 'observed_cidrs.v53', 'recovery.v53', 'event_log.v53', 'token_events.v53', 'plan.v53', 'pgtrigger.v53', 'storage.v53'],
        ),
    ]
