"""An environment holds one block of each family within its organisation. Goes before the code."""

from django.db import migrations, models

from pools import sql

_SINGLE = {"category__in": ("node", "instance", "ipv4"), "state": "held"}


class Migration(migrations.Migration):
    dependencies = [("pools", "0003_roles")]

    operations = [
        migrations.RemoveConstraint("block", "one_block_per_holder"),
        migrations.AddConstraint(
            "block",
            models.UniqueConstraint(
                condition=models.Q(**_SINGLE) & ~models.Q(holder_kind="env"),
                fields=("holder_id", "holder_kind", "space", "category", "family"),
                name="one_block_per_holder",
                violation_error_code="one_per_holder",
            ),
        ),
        migrations.AddConstraint(
            "block",
            models.UniqueConstraint(
                condition=models.Q(**_SINGLE, holder_kind="env"),
                fields=("holder_id", "org", "space", "category", "family"),
                name="one_block_per_environment",
                violation_error_code="one_per_holder",
            ),
        ),
        migrations.RunSQL(
            "DROP FUNCTION IF EXISTS ipam_release(bigint, text, text, text, boolean, text)",
            migrations.RunSQL.noop,
        ),
        *sql.install("rules", "allocate"),
    ]
