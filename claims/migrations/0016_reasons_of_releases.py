"""The log of events tells a release with a reason from a reclaim (pools/sql/event_log.sql).

Before or after the new code: what the old code writes is read as it was.
"""

from django.db import migrations

from claims import sql


class Migration(migrations.Migration):
    dependencies = [("claims", "0015_cluster_owners"), ("pools", "0027_allocators_note")]

    operations = [migrations.RunSQL(sql.event_log(), migrations.RunSQL.noop)]
