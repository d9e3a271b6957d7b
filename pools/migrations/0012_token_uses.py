"""When tokens were last used. Goes before the code."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("knox", "0009_extend_authtoken_field"),
        ("pools", "0011_watchers"),
    ]

    operations = [
        migrations.CreateModel(
            name="TokenUse",
            fields=[
                (
                    "token",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="use",
                        serialize=False,
                        to=settings.KNOX_TOKEN_MODEL,
                    ),
                ),
                ("used_at", models.DateTimeField()),
            ],
        ),
    ]
