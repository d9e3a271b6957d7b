import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0015_manifests_inline"),
    ]

    operations = [
        migrations.CreateModel(
            name="ReferenceFeed",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("holder_kind", models.CharField(max_length=63)),
                ("sequence", models.BigIntegerField()),
                ("fingerprint", models.CharField(max_length=64)),
                ("reporter", models.CharField(blank=True, default="", max_length=150)),
                ("reported_at", models.DateTimeField()),
                ("complete_at", models.DateTimeField(null=True)),
                ("answer", models.JSONField(default=dict)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reference_feeds",
                        to="pools.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["cluster_id", "holder_kind"],
                "permissions": [("report_references", "Can report who refers to blocks")],
            },
        ),
        migrations.CreateModel(
            name="Reference",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("holder_id", models.CharField(max_length=253)),
                ("holder_uid", models.CharField(blank=True, default="", max_length=253)),
                ("org", models.CharField(blank=True, default="", max_length=253)),
                (
                    "feed",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="references",
                        to="pools.referencefeed",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Leak",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("source", models.CharField(max_length=63)),
                ("holder_kind", models.CharField(max_length=63)),
                ("holder_id", models.CharField(max_length=253)),
                ("holder_uid", models.CharField(blank=True, default="", max_length=253)),
                ("allocated_at", models.DateTimeField()),
                ("missed_at", models.DateTimeField()),
                ("observed_at", models.DateTimeField()),
                ("observations", models.PositiveIntegerField(default=1)),
                ("confirmed_at", models.DateTimeField(null=True)),
                (
                    "block",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="leak",
                        to="pools.block",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="leaks",
                        to="pools.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["missed_at", "id"],
                "permissions": [("reclaim", "Can reclaim leaked blocks")],
                "indexes": [
                    models.Index(
                        condition=models.Q(("confirmed_at__isnull", False)),
                        fields=["cluster", "id"],
                        name="leak_confirmed",
                    )
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="referencefeed",
            constraint=models.UniqueConstraint(
                fields=("cluster", "holder_kind"), name="reference_feed_unique"
            ),
        ),
        migrations.AddConstraint(
            model_name="reference",
            constraint=models.UniqueConstraint(
                fields=("feed", "holder_id", "holder_uid", "org"), name="reference_unique"
            ),
        ),
    ]
