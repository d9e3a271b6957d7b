"""workload_comparison: as edited. Goes before the code."""

import pools.sql
from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('claims', '0003_sql_v47'),
        ('pools', '0003_sql_v48'),
    ]

    operations = [
        pools.sql.Install(
            app='claims',
            names=['workload_comparison.v48'],
        ),
    ]
