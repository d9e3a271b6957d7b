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
            names=['rules.v44', 'allocate.v44', 'observed_cidrs.v44', 'recovery.v44', 'event_log.v44', 'plan.v44', 'pgtrigger.v44', 'storage.v44'],
        ),
    ]
