"""What a cluster serves, and how many objects failed; before the new code, which writes the columns."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pools", "0031_login_failures")]

    operations = [
        migrations.AddField(
            "connection",
            "failed_objects",
            models.PositiveIntegerField(default=0, db_default=0, editable=False),
        ),
        migrations.AddField("connection", "served", models.JSONField(null=True, editable=False)),
    ]
