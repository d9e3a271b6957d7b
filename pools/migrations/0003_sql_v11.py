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
            names=['rules.v11', 'allocate.v11', 'observed_cidrs.v11', 'recovery.v11', 'event_log.v11', 'pgtrigger.v11', 'storage.v11'],
        ),
    ]
