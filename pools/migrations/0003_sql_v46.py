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
            names=['rules.v46', 'allocate.v46', 'observed_cidrs.v46', 'recovery.v46', 'event_log.v46', 'plan.v46', 'pgtrigger.v46', 'storage.v46'],
        ),
    ]
