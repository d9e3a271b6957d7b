from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0016_references"),
    ]

    operations = [
        migrations.CreateModel(
            name="AuditSegment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("first_id", models.BigIntegerField()),
                ("last_id", models.BigIntegerField()),
                ("count", models.PositiveIntegerField()),
                ("digest", models.CharField(max_length=64)),
                ("sealed_at", models.DateTimeField()),
                ("purged_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["id"],
                "indexes": [models.Index(fields=["day", "id"], name="audit_segment_day")],
            },
        ),
    ]
