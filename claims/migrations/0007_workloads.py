"""What runs beside what is registered, as a view."""

from django.db import migrations, models

from claims import sql


class Migration(migrations.Migration):

    dependencies = [("claims", "0009_event_log")]

    operations = [
        *sql.install("verdicts"),
        migrations.CreateModel(
            name="Verdict",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("section", models.IntegerField()),
                ("item", models.BigIntegerField()),
                ("beside", models.BigIntegerField()),
                ("by", models.CharField(max_length=7)),
                ("registered_namespace", models.CharField(max_length=253)),
                ("registered_vm", models.CharField(max_length=253)),
                ("running_namespace", models.CharField(max_length=253)),
                ("running_name", models.CharField(max_length=253)),
                ("verdict", models.CharField(max_length=9)),
            ],
            options={
                "db_table": "claims_verdict",
                "ordering": ["section", "item", "beside"],
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="OwnVerdict",
            fields=[
                ("id", models.CharField(max_length=512, primary_key=True, serialize=False)),
                ("namespace", models.CharField(max_length=253)),
                ("section", models.IntegerField()),
                ("item", models.BigIntegerField()),
                ("beside", models.BigIntegerField()),
                ("by", models.CharField(max_length=7)),
                ("registered_namespace", models.CharField(max_length=253)),
                ("registered_vm", models.CharField(max_length=253)),
                ("running_namespace", models.CharField(max_length=253)),
                ("running_name", models.CharField(max_length=253)),
                ("verdict", models.CharField(max_length=9)),
            ],
            options={
                "db_table": "claims_own_verdict",
                "ordering": ["section", "item", "beside"],
                "managed": False,
            },
        ),
    ]
