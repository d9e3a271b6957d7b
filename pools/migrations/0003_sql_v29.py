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
            names=['rules.v29', 'allocate.v29', 'observed_cidrs.v29', 'recovery.v29', 'event_log.v29', 'plan.v29', 'pgtrigger.v29', 'storage.v29'],
        ),
    ]
