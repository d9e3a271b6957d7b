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
            names=['rules.v30', 'allocate.v30', 'observed_cidrs.v30', 'recovery.v30', 'event_log.v30', 'plan.v30', 'pgtrigger.v30', 'storage.v30'],
        ),
    ]
