from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0018_samples"),
    ]

    operations = [
        migrations.CreateModel(
            name="CountedUntil",
            fields=[
                ("table", models.CharField(max_length=63, primary_key=True, serialize=False)),
                ("until", models.DateTimeField()),
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
    ]
