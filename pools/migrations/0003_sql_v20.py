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
            names=['rules.v20', 'allocate.v20', 'observed_cidrs.v20', 'recovery.v20', 'event_log.v20', 'plan.v20', 'pgtrigger.v20', 'storage.v20'],
        ),
    ]
