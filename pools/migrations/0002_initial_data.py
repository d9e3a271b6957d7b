"""What a new register begins with: functions, triggers and views; the roles; from which event on events are counted."""

from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

from pools import sql

_VIEWER = [
    "view_addressspace", "view_allocationrequest", "view_block", "view_cluster",
    "view_environment", "view_event", "view_pool", "view_poolcidr", "view_reservedrange",
    "view_connection", "view_observedobject", "view_observedcidr", "view_syncrun", "view_finding", "view_drift",
    "view_leak", "view_referencefeed", "view_alert", "view_silence", "view_sample",
    "view_recovery", "view_measure", "view_container",
    "view_customfield",
    "view_registerimport", "view_netboxsource",
]  # fmt: skip
_OPERATOR = [
    "allocate", "add_pool", "change_pool", "delete_pool", "add_poolcidr", "change_poolcidr",
    "delete_poolcidr", "add_reservedrange", "change_reservedrange", "delete_reservedrange",
    "add_environment", "change_environment", "delete_environment",
    "add_container", "change_container", "delete_container",
    "add_registerimport", "change_registerimport",
    "reconcile", "change_drift", "reclaim", "report_references", "change_alert",
    "add_silence", "delete_silence",
]  # fmt: skip
_ADMINISTRATOR = [
    "force_release", "add_cluster", "change_cluster", "delete_cluster", "change_block",
    "change_allocationrequest", "add_connection", "change_connection", "delete_connection",
    "delete_journalentry", "recover", "view_webhooktarget", "add_webhooktarget", "change_webhooktarget",
    "add_netboxsource", "change_netboxsource", "delete_netboxsource",
    "delete_webhooktarget", "view_delivery",
    "add_customfield", "change_customfield", "delete_customfield", "change_savedfilter",
    "add_user", "change_user", "delete_user", "view_user", "view_group", "add_authtoken",
    "delete_authtoken", "view_authtoken",
]  # fmt: skip


def make_roles(apps: Apps, _schema_editor: object) -> None:
    """Make the groups viewer, operator and administrator; each has what the one before has."""
    for label in ("pools", "auth", "knox"):
        config = apps.get_app_config(label)
        config.models_module = True  # create_permissions ignores an app without one
        create_permissions(config, apps=apps, verbosity=0)
        config.models_module = None
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label__in=["pools", "auth", "knox"]
    )
    groups = apps.get_model("auth", "Group").objects
    codenames: list[str] = []
    for role, more in (
        ("viewer", _VIEWER),
        ("operator", _OPERATOR),
        ("administrator", _ADMINISTRATOR),
    ):
        codenames += more
        group, _ = groups.get_or_create(name=role)
        group.permissions.add(*permissions.filter(codename__in=codenames))


def count_from_the_first_event(apps: Apps, _schema_editor: object) -> None:
    counted = apps.get_model("pools", "CountedUntil").objects
    counted.get_or_create(log="events", defaults={"counted": 0, "assigned": 0, "waits_for": []})


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0001_initial"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("knox", "0009_extend_authtoken_field"),
    ]

    operations = [
        migrations.RunSQL(sql.after_tables(), migrations.RunSQL.noop),
        migrations.RunPython(make_roles, migrations.RunPython.noop),
        migrations.RunPython(count_from_the_first_event, migrations.RunPython.noop),
    ]
