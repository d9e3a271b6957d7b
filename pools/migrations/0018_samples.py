import django.db.models.deletion
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
        migrations.CreateModel(
            name="SampleSum",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("day", models.DateField()),
                (
                    "by",
                    models.CharField(
                        choices=[
                            ("category", "Category"),
                            ("cluster", "Cluster"),
                            ("org", "Organisation"),
                            ("env", "Environment"),
                        ],
                        max_length=8,
                    ),
                ),
                ("org", models.CharField(blank=True, default="", max_length=253)),
                ("name", models.CharField(blank=True, default="", max_length=253)),
                ("rest", models.BooleanField(default=False)),
                ("family", models.PositiveSmallIntegerField()),
                ("members", models.BigIntegerField()),
                ("capacity", models.DecimalField(decimal_places=0, default=0, max_digits=48)),
                ("held", models.BigIntegerField()),
                ("cooling", models.BigIntegerField()),
                ("reserved", models.DecimalField(decimal_places=0, default=0, max_digits=48)),
                ("taken_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["day", "by", "org", "name", "family"],
                "indexes": [models.Index(fields=["day"], name="sample_sum_day")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("by", "day", "org", "name", "family", "rest"),
                        name="sample_sum_unique",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="PoolForecast",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("family", models.PositiveSmallIntegerField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("full", "full"),
                            ("too_little_history", "too_little_history"),
                            ("not_growing", "not_growing"),
                            ("distant", "distant"),
                            ("growing", "growing"),
                        ],
                        max_length=20,
                    ),
                ),
                ("history", models.PositiveIntegerField()),
                ("per_day", models.FloatField(default=0)),
                ("day", models.DateField(blank=True, null=True)),
                ("earliest", models.DateField(blank=True, null=True)),
                ("latest", models.DateField(blank=True, null=True)),
                ("made_at", models.DateTimeField()),
                (
                    "pool",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="forecasts",
                        to="pools.pool",
                    ),
                ),
            ],
            options={
                "ordering": ["pool_id", "family"],
                "indexes": [models.Index(fields=["day"], name="pool_forecast_day")],
                "constraints": [
                    models.UniqueConstraint(fields=("pool", "family"), name="pool_forecast_unique")
                ],
            },
        ),
    ]
