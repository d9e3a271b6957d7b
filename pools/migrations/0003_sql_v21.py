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
            names=['rules.v21', 'allocate.v21', 'observed_cidrs.v21', 'recovery.v21', 'event_log.v21', 'plan.v21', 'pgtrigger.v21', 'storage.v21'],
        ),
    ]
