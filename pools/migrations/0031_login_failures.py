"""Failed sign-ins are counted in a table; before the new code, which counts in it."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pools", "0030_pending_cidrs")]

    operations = [
        migrations.CreateModel(
            "LoginFailures",
            [
                ("key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("failures", models.PositiveIntegerField()),
                ("since", models.DateTimeField(db_index=True)),
            ],
        ),
    ]
