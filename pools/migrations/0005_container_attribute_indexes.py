import django.contrib.postgres.indexes
from django.contrib.postgres.operations import AddIndexConcurrently
from django.db import migrations, models


class Migration(migrations.Migration):

    atomic = False

    dependencies = [
        ('pools', '0004_container_attributes'),
    ]

    operations = [
        AddIndexConcurrently(
            model_name='container',
            index=django.contrib.postgres.indexes.GinIndex(fields=['tags'], name='container_tags'),
        ),
        AddIndexConcurrently(
            model_name='container',
            index=django.contrib.postgres.indexes.GinIndex(fields=['custom_fields'], name='container_custom_fields'),
        ),
        AddIndexConcurrently(
            model_name='container',
            index=models.Index(condition=models.Q(('owner', ''), _negated=True), fields=['owner'], name='container_owner'),
        ),
    ]
