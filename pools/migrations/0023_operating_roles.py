"""What the roles may do with leaks, checks, notices and recovery."""

from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.db import migrations

_SEE = [
    "view_leak", "view_referencefeed", "view_checkrun", "view_notice", "view_sample",
    "view_auditsegment", "view_recovery", "view_measure",
]  # fmt: skip
_OPERATE = ["reclaim", "report_references", "run_checks"]
_ADMINISTER = [
    "repair", "recover", "view_webhooktarget", "add_webhooktarget", "change_webhooktarget",
    "delete_webhooktarget", "view_delivery",
]  # fmt: skip


def give_to_roles(apps: Apps, _schema_editor: object) -> None:
    """viewer sees, operator reports references and reclaims, administrator repairs and recovers."""
    config = apps.get_app_config("pools")
    config.models_module = True  # what create_permissions looks for
    create_permissions(config, apps=apps, verbosity=0)
    config.models_module = None
    permission = apps.get_model("auth", "Permission")
    group = apps.get_model("auth", "Group")
    names: list[str] = []
    for role, more in (("viewer", _SEE), ("operator", _OPERATE), ("administrator", _ADMINISTER)):
        names += more
        found, _ = group.objects.get_or_create(name=role)
        found.permissions.add(
            *permission.objects.filter(codename__in=names, content_type__app_label="pools")
        )


class Migration(migrations.Migration):
    dependencies = [("pools", "0022_recovery")]

    operations = [migrations.RunPython(give_to_roles, migrations.RunPython.noop)]
