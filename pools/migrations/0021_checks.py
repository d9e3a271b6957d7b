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
                ("started_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
                ("repair", models.BooleanField(default=False)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("complete", models.BooleanField(default=False)),
                ("violations", models.PositiveIntegerField(default=0)),
                ("repaired", models.PositiveIntegerField(default=0)),
                ("report", models.JSONField(default=list)),
            ],
            options={
                "ordering": ["-id"],
                "permissions": [
                    ("run_checks", "Can have the invariants proved"),
                    ("repair", "Can have violations repaired"),
                ],
            },
        ),
    ]
