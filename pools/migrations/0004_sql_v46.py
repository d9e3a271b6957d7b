"""rules: as edited. Goes before the code."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('pools', '0003_sql_v45'),
    ]

    operations = [
        pools.sql.Install(
            app='pools',
            names=['rules.v46'],
        ),
    ]
