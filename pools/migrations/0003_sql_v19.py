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
            names=['rules.v19', 'allocate.v19', 'observed_cidrs.v19', 'recovery.v19', 'event_log.v19', 'plan.v19', 'pgtrigger.v19', 'storage.v19'],
        ),
    ]
