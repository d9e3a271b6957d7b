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
            names=['rules.v15', 'allocate.v15', 'observed_cidrs.v15', 'recovery.v15', 'event_log.v15', 'pgtrigger.v15', 'storage.v15'],
        ),
    ]
