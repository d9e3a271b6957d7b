"""CIDRs of a pool may be regrouped while blocks of them are in use. Goes before the code."""

from django.db import migrations

from pools import sql


class Migration(migrations.Migration):
    dependencies = [("pools", "0032_what_clusters_serve")]

    operations = sql.install("rules")
