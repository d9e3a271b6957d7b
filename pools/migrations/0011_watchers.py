"""Up to where each kind of a cluster was taken in, and who watches it. Goes before the code."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [("pools", "0010_cidr_migrations")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="positions",
            field=models.JSONField(default=dict, editable=False),
        ),
        migrations.RemoveField(model_name="connection", name="watched_until"),
        migrations.CreateModel(
            name="Watcher",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("name", models.CharField(max_length=200, unique=True)),
                ("seen_at", models.DateTimeField()),
            ],
        ),
    ]
