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
            names=['rules.v27', 'allocate.v27', 'observed_cidrs.v27', 'recovery.v27', 'event_log.v27', 'plan.v27', 'pgtrigger.v27', 'storage.v27'],
        ),
    ]
