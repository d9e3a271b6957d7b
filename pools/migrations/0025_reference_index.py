"""Holders that reports name are found by one index, whatever the planner knows."""

import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0024_webhook_events"),
    ]

    operations = [
        migrations.AlterField(
            model_name="reference",
            name="feed",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="references",
                to="pools.referencefeed",
            ),
        ),
    ]
