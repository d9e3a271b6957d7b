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
            names=['rules.v28', 'allocate.v28', 'observed_cidrs.v28', 'recovery.v28', 'event_log.v28', 'plan.v28', 'pgtrigger.v28', 'storage.v28'],
        ),
    ]
