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
            names=['rules.v32', 'allocate.v32', 'observed_cidrs.v32', 'recovery.v32', 'event_log.v32', 'plan.v32', 'pgtrigger.v32', 'storage.v32'],
        ),
    ]
