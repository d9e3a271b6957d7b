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
            names=['rules.v31', 'allocate.v31', 'observed_cidrs.v31', 'recovery.v31', 'event_log.v31', 'plan.v31', 'pgtrigger.v31', 'storage.v31'],
        ),
    ]
