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
            names=['rules.v22', 'allocate.v22', 'observed_cidrs.v22', 'recovery.v22', 'event_log.v22', 'plan.v22', 'pgtrigger.v22', 'storage.v22'],
        ),
    ]
