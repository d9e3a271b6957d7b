import django.contrib.postgres.fields
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0020_notices"),
    ]

    operations = [
        migrations.CreateModel(
            name="CheckRun",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("asked_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("repair", models.BooleanField(default=False)),
                (
                    "only",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=63),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("seconds", models.PositiveIntegerField(default=300)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("source", models.CharField(blank=True, default="", max_length=16)),
                ("complete", models.BooleanField(default=False)),
                ("violations", models.PositiveIntegerField(default=0)),
                ("repaired", models.PositiveIntegerField(default=0)),
                ("report", models.JSONField(default=list)),
            ],
            options={
                "verbose_name": "check",
                "verbose_name_plural": "checks",
                "ordering": ["-id"],
                "permissions": [
                    ("run_checks", "Can have the invariants proved"),
                    ("repair", "Can have violations repaired"),
                ],
            },
        ),
    ]
