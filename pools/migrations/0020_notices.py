import uuid

import django.contrib.postgres.fields
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0019_measures"),
    ]

    operations = [
        migrations.CreateModel(
            name="WebhookTarget",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=100, unique=True)),
                ("url", models.CharField(max_length=500)),
                ("ca", models.TextField(blank=True, default="")),
                ("sealed", models.TextField(editable=False)),
                (
                    "codes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=63),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField()),
                ("secret_made_at", models.DateTimeField()),
                ("failures", models.PositiveIntegerField(default=0, editable=False)),
                ("wait_until", models.DateTimeField(editable=False, null=True)),
                ("leased_until", models.DateTimeField(editable=False, null=True)),
                ("fence", models.BigIntegerField(default=0, editable=False)),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Notice",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("code", models.CharField(max_length=63)),
                ("subject", models.CharField(max_length=500)),
                (
                    "level",
                    models.CharField(
                        choices=[("error", "error"), ("warning", "warning")], max_length=7
                    ),
                ),
                ("title", models.CharField(max_length=300)),
                ("detail", models.CharField(blank=True, default="", max_length=1000)),
                ("url", models.CharField(blank=True, default="", max_length=500)),
                ("since", models.DateTimeField()),
                ("seen_at", models.DateTimeField()),
                ("ended_at", models.DateTimeField(null=True)),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("ended_at", None)),
                        fields=("code", "subject"),
                        name="notice_open_once",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Delivery",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "event",
                    models.CharField(
                        choices=[
                            ("opened", "opened"),
                            ("changed", "changed"),
                            ("ended", "ended"),
                            ("test", "test"),
                        ],
                        max_length=8,
                    ),
                ),
                ("uid", models.UUIDField(default=uuid.uuid4, unique=True)),
                ("body", models.TextField()),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("delivered", "delivered"),
                            ("failed", "failed"),
                        ],
                        default="pending",
                        max_length=9,
                    ),
                ),
                ("attempts", models.PositiveIntegerField(default=0)),
                ("next_try_at", models.DateTimeField()),
                ("last_status", models.PositiveSmallIntegerField(null=True)),
                ("last_error", models.CharField(blank=True, default="", max_length=500)),
                ("created_at", models.DateTimeField()),
                ("delivered_at", models.DateTimeField(null=True)),
                (
                    "notice",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="pools.notice",
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="deliveries",
                        to="pools.webhooktarget",
                    ),
                ),
            ],
            options={
                "verbose_name_plural": "deliveries",
                "ordering": ["-id"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state", "pending")),
                        fields=["target", "next_try_at"],
                        name="delivery_next_try",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("event__in", ["opened", "ended"])),
                        fields=("target", "notice", "event"),
                        name="delivery_unique",
                    )
                ],
            },
        ),
    ]
