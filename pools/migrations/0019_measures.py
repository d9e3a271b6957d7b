from django.contrib.postgres.fields import ArrayField
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0018_samples"),
    ]

    operations = [
        migrations.CreateModel(
            name="CountedUntil",
            fields=[
                ("log", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("counted", models.BigIntegerField(default=0)),
                ("seen", models.BigIntegerField(default=0)),
                (
                    "waits_for",
                    ArrayField(models.CharField(max_length=40), default=list, size=None),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Measure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("labels", models.TextField(default="{}")),
                ("value", models.FloatField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("name", "labels"), name="measure_unique")
                ],
            },
        ),
        # What happened before is not counted: a counter that begins with millions would look like a
        # storm of allocations.
        migrations.RunSQL(
            "INSERT INTO pools_counteduntil (log, counted, seen, waits_for)"
            " SELECT 'events', n, n, '{}' FROM (SELECT CASE WHEN is_called"
            " THEN last_value ELSE 0 END AS n FROM pools_event_number) AS s",
            migrations.RunSQL.noop,
        ),
    ]
