"""Manifests up to 8 KB are stored as they are: compressing those of a cluster that is seen for the
first time took a tenth of the pass. A node's takes some 2.6 KB instead of 0.9 (docs/reference/scaling.md)."""

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("pools", "0014_one_statement")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE pools_observedobject SET (toast_tuple_target = 8160)",
            "ALTER TABLE pools_observedobject RESET (toast_tuple_target)",
        ),
    ]
