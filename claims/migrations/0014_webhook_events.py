"""The log of events tells of webhooks, and again of what the view of this app adds to it."""

from django.db import migrations

from claims import sql


class Migration(migrations.Migration):
    dependencies = [("claims", "0013_history_search"), ("pools", "0024_webhook_events")]

    operations = [migrations.RunSQL(sql.event_log(), migrations.RunSQL.noop)]
