"""When the register last changed something that a cluster may have to be told. Goes before the code."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("pools", "0028_anchor_messages")]

    operations = [
        migrations.AddField(
            model_name="connection",
            name="nudged_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
    ]
