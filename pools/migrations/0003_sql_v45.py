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
            names=['rules.v45', 'allocate.v45', 'observed_cidrs.v45', 'recovery.v45', 'event_log.v45', 'plan.v45', 'pgtrigger.v45', 'storage.v45'],
        ),
    ]
