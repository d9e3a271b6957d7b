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
            names=['rules.v13', 'allocate.v13', 'observed_cidrs.v13', 'recovery.v13', 'event_log.v13', 'pgtrigger.v13', 'storage.v13'],
        ),
    ]
