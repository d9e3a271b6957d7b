"""Functions, triggers and views; what the roles may do with VM networks, and the role of those who own VMs."""

from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

from claims import sql

_OF_A_NAMESPACE = [
    "view_network", "view_nad", "view_ippool", "view_entry", "view_ipamclaim", "view_workload",
]  # fmt: skip
_IMPORT = ["view_vmimport", "add_vmimport", "change_vmimport"]
_VIEWER = [
    *_OF_A_NAMESPACE, "view_every_namespace", "view_decision", "view_networksettings",
    "view_vmimport", "view_wave",
]  # fmt: skip
_OPERATOR = [
    *_VIEWER,
    *(
        f"{verb}_{model}"
        for model in ("network", "nad", "ippool", "entry", "ipamclaim", "vmimport", "wave")
        for verb in ("add", "change", "delete")
    ),
    "request_address",
]
_ADMINISTRATOR = [
    *_OPERATOR, "change_networksettings",
    "view_membership", "add_membership", "change_membership", "delete_membership",
]  # fmt: skip
_VM_OWNER = [*_OF_A_NAMESPACE, *_IMPORT, "request_address"]


def give_to_roles(apps: Apps, _schema_editor: object) -> None:
    """viewer, operator and administrator see all namespaces; a vm-owner those of a membership."""
    config = apps.get_app_config("claims")
    config.models_module = True  # create_permissions ignores an app without one
    create_permissions(config, apps=apps, verbosity=0)
    config.models_module = None
    permissions = apps.get_model("auth", "Permission").objects.filter(
        content_type__app_label="claims"
    )
    groups = apps.get_model("auth", "Group").objects
    for role, codenames in (
        ("viewer", _VIEWER),
        ("operator", _OPERATOR),
        ("administrator", _ADMINISTRATOR),
        ("vm-owner", _VM_OWNER),
    ):
        group, _ = groups.get_or_create(name=role)
        group.permissions.add(*permissions.filter(codename__in=codenames))


class Migration(migrations.Migration):
    dependencies = [("claims", "0001_initial"), ("pools", "0002_initial_data")]

    operations = [
        migrations.RunSQL(sql.after_tables(), migrations.RunSQL.noop),
        migrations.RunPython(give_to_roles, migrations.RunPython.noop),
    ]
