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
            names=['rules.v18', 'allocate.v18', 'observed_cidrs.v18', 'recovery.v18', 'event_log.v18', 'plan.v18', 'pgtrigger.v18', 'storage.v18'],
        ),
    ]
