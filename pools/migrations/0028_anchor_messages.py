"""Messages of webhooks may carry the anchor of the audit chain; before the new code, it changes no table."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pools", "0027_allocators_note")]

    operations = [
        migrations.AlterField(
            "delivery",
            "event",
            models.CharField(
                max_length=8,
                choices=[
                    ("opened", "opened"),
                    ("changed", "changed"),
                    ("ended", "ended"),
                    ("test", "test"),
                    ("anchor", "anchor"),
                ],
            ),
        ),
    ]
