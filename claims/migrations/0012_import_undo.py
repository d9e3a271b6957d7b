"""What a large import wrote is taken back by a worker."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("claims", "0011_settings_events"),
    ]

    operations = [
        migrations.AddField(
            model_name="vmimport",
            name="undo_wanted",
            field=models.BooleanField(db_default=False, default=False),
        ),
    ]
