"""Fresh blocks are handed out before released ones. Goes before the code."""

from django.db import migrations, models

from pools import sql


class Migration(migrations.Migration):
    dependencies = [("pools", "0033_regrouping")]

    operations = [
        migrations.AddField("window", "all_drawn", models.BooleanField(null=True)),
        *sql.install("allocate", "rules"),
    ]
