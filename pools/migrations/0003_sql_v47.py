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
            names=['rules.v47', 'allocate.v47', 'observed_cidrs.v47', 'recovery.v47', 'event_log.v47', 'plan.v47', 'pgtrigger.v47', 'storage.v47'],
        ),
    ]
