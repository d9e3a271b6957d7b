from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0017_audit"),
    ]

    operations = [
        migrations.CreateModel(
            name="Sample",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                ("pool_id", models.BigIntegerField()),
                ("cluster", models.CharField(max_length=63)),
                ("pool", models.CharField(max_length=253)),
                (
                    "category",
                    models.CharField(
                        choices=[
                            ("pod", "Pod CIDRs"),
                            ("node", "Nodes"),
                            ("instance", "Instances"),
                            ("ipv4", "Public IPv4"),
                            ("vm", "VM networks"),
                        ],
                        max_length=8,
                    ),
                ),
                ("family", models.PositiveSmallIntegerField()),
                ("capacity", models.DecimalField(decimal_places=0, max_digits=39)),
                ("held", models.BigIntegerField()),
                ("cooling", models.BigIntegerField()),
                ("reserved", models.DecimalField(decimal_places=0, max_digits=39)),
                ("taken_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["day", "pool_id", "family"],
                "indexes": [models.Index(fields=["day"], name="sample_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("pool_id", "family", "day"), name="sample_unique"
                    )
                ],
            },
        ),
    ]
