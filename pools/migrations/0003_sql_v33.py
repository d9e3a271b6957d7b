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
            names=['rules.v33', 'allocate.v33', 'observed_cidrs.v33', 'recovery.v33', 'event_log.v33', 'plan.v33', 'pgtrigger.v33', 'storage.v33'],
        ),
    ]
