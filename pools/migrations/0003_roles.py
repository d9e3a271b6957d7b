from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

_VIEW = [
    "view_addressspace", "view_allocationrequest", "view_block", "view_cluster",
    "view_environment", "view_event", "view_pool", "view_poolcidr", "view_reservedrange",
]  # fmt: skip
_OPERATE = [
    "allocate", "add_pool", "change_pool", "delete_pool", "add_poolcidr", "change_poolcidr",
    "delete_poolcidr", "add_reservedrange", "change_reservedrange", "delete_reservedrange",
]  # fmt: skip
_ADMINISTER = [
    "force_release", "add_cluster", "change_cluster", "delete_cluster", "change_block",
    "change_allocationrequest",
]  # fmt: skip
_USERS = ["add_user", "change_user", "delete_user", "view_user", "view_group", "add_authtoken",
          "delete_authtoken", "view_authtoken"]  # fmt: skip


def make_roles(apps: Apps, _schema_editor: object) -> None:
    """The groups viewer, operator and administrator; each has what the one before has."""
    for label in ("pools", "auth", "knox"):
        config = apps.get_app_config(label)
        config.models_module = True  # what create_permissions looks for
        create_permissions(config, apps=apps, verbosity=0)
        config.models_module = None
    permission = apps.get_model("auth", "Permission")
    group = apps.get_model("auth", "Group")
    names: list[str] = []
    for role, more in (
        ("viewer", _VIEW),
        ("operator", _OPERATE),
        ("administrator", _ADMINISTER + _USERS),
    ):
        names += more
        made, _ = group.objects.get_or_create(name=role)
        made.permissions.add(
            *permission.objects.filter(
                codename__in=names, content_type__app_label__in=["pools", "auth", "knox"]
            )
        )


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0002_rules"),
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("knox", "0009_extend_authtoken_field"),
    ]

    operations = [migrations.RunPython(make_roles, migrations.RunPython.noop)]
