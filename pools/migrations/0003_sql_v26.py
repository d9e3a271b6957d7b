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
            names=['rules.v26', 'allocate.v26', 'observed_cidrs.v26', 'recovery.v26', 'event_log.v26', 'plan.v26', 'pgtrigger.v26', 'storage.v26'],
        ),
    ]
