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
            names=['rules.v50', 'allocate.v50', 'observed_cidrs.v50', 'recovery.v50', 'event_log.v50', 'plan.v50', 'pgtrigger.v50', 'storage.v50'],
        ),
    ]
