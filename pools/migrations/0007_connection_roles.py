"""Before the new code: a column that may be empty, and what the roles may do with clusters."""

from django.apps.registry import Apps
from django.contrib.auth.management import create_permissions
from django.db import migrations, models

_SEE = ["view_connection", "view_observedobject", "view_run", "view_finding", "view_drift"]
_OPERATE = ["reconcile", "change_drift"]
_ADMINISTER = ["add_connection", "change_connection", "delete_connection"]


def give_to_roles(apps: Apps, _schema_editor: object) -> None:
    """viewer sees, operator reconciles and settles differences, administrator connects."""
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
    dependencies = [("pools", "0006_connections")]

    operations = [
        migrations.AlterModelOptions(
            name="connection",
            options={
                "ordering": ["cluster__name"],
                "permissions": [("reconcile", "Can have a cluster reconciled at once")],
            },
        ),
        migrations.AddField(
            model_name="connection",
            name="expires_at",
            field=models.DateTimeField(editable=False, null=True),
        ),
        migrations.RunPython(give_to_roles, migrations.RunPython.noop),
    ]
