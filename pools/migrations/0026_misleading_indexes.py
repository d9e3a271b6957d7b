"""Environments and objects of clusters are found by indexes that begin with the cluster: one of the
cluster alone, and so small, could mislead the planner to read all of a cluster for each of them.

Not as Django's AlterField does it, which makes the foreign key anew and checks all rows for it.
"""

import django.db.models.deletion
from django.db import migrations, models

_INDEXES = {
    "pools_environment": "pools_environment_cluster_id_c339ce6a",
    "pools_observedobject": "pools_observedobject_cluster_id_d36bb933",
}


def _cluster(related_name: str) -> models.ForeignKey:
    return models.ForeignKey(
        db_index=False,
        on_delete=django.db.models.deletion.CASCADE,
        related_name=related_name,
        to="pools.cluster",
    )


class Migration(migrations.Migration):
    dependencies = [
        ("pools", "0025_reference_index"),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    f"DROP INDEX IF EXISTS {index}", f"CREATE INDEX {index} ON {table} (cluster_id)"
                )
                for table, index in _INDEXES.items()
            ],
            state_operations=[
                migrations.AlterField("environment", "cluster", _cluster("environments")),
                migrations.AlterField("observedobject", "cluster", _cluster("objects_seen")),
            ],
        ),
    ]
