from django.db import migrations

from pools import sql


class Migration(migrations.Migration):
    dependencies = [("pools", "0001_initial")]

    operations = sql.install("rules", "allocate")  # the view of all events: 0024
