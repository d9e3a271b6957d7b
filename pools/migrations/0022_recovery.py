from django.db import migrations, models

from pools import sql


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0021_checks"),
    ]

    operations = [
        migrations.CreateModel(
            name="Recovery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("since", models.DateTimeField()),
                ("after_run", models.BigIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("actor", models.CharField(blank=True, default="", max_length=150)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ended_by", models.CharField(blank=True, default="", max_length=150)),
            ],
            options={
                "verbose_name_plural": "recoveries",
                "ordering": ["-id"],
                "permissions": [("recover", "Can stop and resume all allocation")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("ended_at",),
                        name="one_recovery_at_a_time",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        *sql.install("recovery"),
    ]
