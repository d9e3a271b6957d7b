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
            names=['rules.v49', 'allocate.v49', 'observed_cidrs.v49', 'recovery.v49', 'event_log.v49', 'plan.v49', 'pgtrigger.v49', 'storage.v49'],
        ),
    ]
