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
            names=['rules.v23', 'allocate.v23', 'observed_cidrs.v23', 'recovery.v23', 'event_log.v23', 'plan.v23', 'pgtrigger.v23', 'storage.v23'],
        ),
    ]
