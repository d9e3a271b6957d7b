"""The allocator's note of a pool has all that handing out a block must know; empty until first used."""

from django.db import migrations, models

from pools import sql


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0026_misleading_indexes"),
    ]

    operations = [
        migrations.AddField("window", "only_family", models.BooleanField(null=True)),
        migrations.AddField("window", "space_id", models.BigIntegerField(null=True)),
        migrations.AddField("window", "category", models.CharField(max_length=8, null=True)),
        migrations.AddField("window", "cluster_id", models.BigIntegerField(null=True)),
        migrations.AddField("window", "pool_name", models.CharField(max_length=253, null=True)),
        migrations.AddField("window", "cluster_name", models.CharField(max_length=253, null=True)),
        *sql.install("allocate", "rules"),
    ]
