"""What the roles may do with VM networks, and the role of those who own VMs."""

from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

_OWN = ["view_network", "view_nad", "view_ippool", "view_entry", "view_ipamclaim", "view_workload"]
_SEE = [*_OWN, "view_every_namespace", "view_decision", "view_networksettings"]
_OPERATE = [
    f"{verb}_{model}"
    for model in ("network", "nad", "ippool", "entry", "ipamclaim")
    for verb in ("add", "change", "delete")
] + ["request_address"]
_ADMINISTER = [
    "change_networksettings",
    "view_membership",
    "add_membership",
    "change_membership",
    "delete_membership",
]


def give_to_roles(apps: Apps, _schema_editor: object) -> None:
    """viewer, operator and administrator see all namespaces; a vm-owner those of a membership."""
    config = apps.get_app_config("claims")
    config.models_module = True  # what create_permissions looks for
    create_permissions(config, apps=apps, verbosity=0)
    config.models_module = None
    permission = apps.get_model("auth", "Permission")
    group = apps.get_model("auth", "Group")

    def give(role: str, names: list[str]) -> None:
        found, _ = group.objects.get_or_create(name=role)
        found.permissions.add(
            *permission.objects.filter(codename__in=names, content_type__app_label="claims")
        )

    give("viewer", _SEE)
    give("operator", _SEE + _OPERATE)
    give("administrator", _SEE + _OPERATE + _ADMINISTER)
    give("vm-owner", [*_OWN, "request_address"])


class Migration(migrations.Migration):
    dependencies = [("claims", "0001_initial"), ("pools", "0007_connection_roles")]

    operations = [migrations.RunPython(give_to_roles, migrations.RunPython.noop)]
