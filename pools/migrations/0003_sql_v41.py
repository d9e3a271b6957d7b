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
            names=['rules.v41', 'allocate.v41', 'observed_cidrs.v41', 'recovery.v41', 'event_log.v41', 'plan.v41', 'pgtrigger.v41', 'storage.v41'],
        ),
    ]
