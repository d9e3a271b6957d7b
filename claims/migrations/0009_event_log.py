"""The log of events also tells of networks, IPPools, entries, claims and memberships."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("claims", "0002_roles"), ("pools", "0013_next_fit")]

    operations = [
        migrations.AddIndex(
            model_name="ippoolevent",
            index=models.Index(fields=["pgh_obj", "pgh_id"], name="ippool_event_object"),
        ),
        migrations.AddIndex(
            model_name="entryevent",
            index=models.Index(fields=["pgh_obj", "pgh_id"], name="entry_event_object"),
        ),
        migrations.AddIndex(
            model_name="ipamclaimevent",
            index=models.Index(fields=["pgh_obj", "pgh_id"], name="ipamclaim_event_object"),
        ),
        # The view itself is installed by 0014, when there are all tables that it tells of.
    ]
