"""Events of entries and claims are found by address, by MAC and by the name of a VM or a claim."""

from django.contrib.postgres import operations
from django.contrib.postgres.indexes import GinIndex
from django.db import migrations, models

_EVENTS = {
    "entryevent": [
        models.Index(fields=["vm", "pgh_id"], name="entry_event_vm_name"),
        GinIndex(fields=["ips"], name="entry_event_ips"),
    ],
    "ipamclaimevent": [
        models.Index(fields=["vm", "pgh_id"], name="ipamclaim_event_vm_name"),
        models.Index(fields=["mac", "pgh_id"], name="ipamclaim_event_mac"),
        models.Index(fields=["name", "pgh_id"], name="ipamclaim_event_name"),
        GinIndex(fields=["ips"], name="ipamclaim_event_ips"),
    ],
}


class Migration(migrations.Migration):
    dependencies = [("claims", "0012_import_undo")]
    # Ten million events are read for an index: nobody who writes some shall wait for that.
    atomic = False

    operations = [
        operations.AddIndexConcurrently(model_name=model, index=index)
        for model, indexes in _EVENTS.items()
        for index in indexes
    ]
