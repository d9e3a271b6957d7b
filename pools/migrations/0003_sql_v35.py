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
            names=['rules.v35', 'allocate.v35', 'observed_cidrs.v35', 'recovery.v35', 'event_log.v35', 'plan.v35', 'pgtrigger.v35', 'storage.v35'],
        ),
    ]
