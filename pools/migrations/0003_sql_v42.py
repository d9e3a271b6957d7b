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
            names=['rules.v42', 'allocate.v42', 'observed_cidrs.v42', 'recovery.v42', 'event_log.v42', 'plan.v42', 'pgtrigger.v42', 'storage.v42'],
        ),
    ]
