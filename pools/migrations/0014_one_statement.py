"""One block for one holder is one statement. Goes before or after the code."""

from django.db import migrations

from pools import sql


class Migration(migrations.Migration):
    dependencies = [("pools", "0013_next_fit")]

    operations = [*sql.install("allocate")]
