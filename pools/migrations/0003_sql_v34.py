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
            names=['rules.v34', 'allocate.v34', 'observed_cidrs.v34', 'recovery.v34', 'event_log.v34', 'plan.v34', 'pgtrigger.v34', 'storage.v34'],
        ),
    ]
