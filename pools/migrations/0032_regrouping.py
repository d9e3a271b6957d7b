"""CIDRs of a pool may be regrouped while blocks of them are in use. Goes before the code."""

from django.db import migrations

from pools import sql


class Migration(migrations.Migration):
    dependencies = [("pools", "0031_login_failures")]

    operations = sql.install("rules")
