"""Pools that follow their cluster, and what was last compared. Goes before the code."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('pools', '0008_webhook_keys'),
    ]

    operations = [
        migrations.AddField(
            model_name='pool',
            name='follows_cluster',
            field=models.BooleanField(db_default=False, default=False, editable=False),
        ),
        migrations.AddField(
            model_name='pool',
            name='agreed',
            field=models.CharField(blank=True, db_default='', default='', editable=False, max_length=160),
        ),
    ]
